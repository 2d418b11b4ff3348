// Everything projective on random sentences: sparse, soft-masked, labelled, sharp, of all small sizes, with scratch
// memory reused throughout.
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "spantree/batch/tree.hpp"
#include "spantree/chart/covariance.hpp"
#include "spantree/chart/eisner.hpp"
#include "spantree/chart/inference.hpp"
#include "spantree/chart/kbest.hpp"
#include "spantree/chart/sample.hpp"

using namespace spantree;
using namespace spantree::projective;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Kind {
    double scale;
    double masked;  // the share of edges that are masked
    double mask;
    int labels;
};
constexpr Kind kinds[] = {{1, 0, 0, 0},   {1, 0.4, -infinity, 0}, {100, 0.2, -infinity, 0}, {1, 0.3, -1e30, 0},
                          {3e5, 0, 0, 0}, {1, 0.2, -infinity, 3}, {1, 0.2, -1e30, 2}};

bool fail(const char* what, int words) {
    std::printf("%s, %d words\n", what, words);
    return false;
}

class Fuzz {
public:
    bool run() {
        for (const Kind& kind : kinds)
            for (int words = 0; words <= 19; ++words)
                for (const Root root : {Root::single, Root::multi})
                    if (!try_sentence(kind, words, root)) return false;
        return true;
    }

private:
    bool try_sentence(const Kind& kind, int words, Root root) {
        const int nodes = words + 1, cell = kind.labels > 0 ? kind.labels : 1;
        std::vector<double> scores(static_cast<std::size_t>(nodes) * nodes * cell);
        double largest = 0.0;
        for (double& score : scores) {
            score = uniform_(random_) < kind.masked ? kind.mask : kind.scale * normal_(random_);
            if (std::isfinite(score)) largest = std::max(largest, std::fabs(score));
        }
        const Sentence<double> sentence{scores.data(), words, nodes * cell, cell, kind.labels, kind.labels > 0 ? 1 : 0};
        std::vector<Heads> heads(static_cast<std::size_t>(nodes)), labels(static_cast<std::size_t>(nodes));
        const auto valid = [&] {
            return is_tree(heads.data(), words, root, mark_) && is_projective(heads.data(), words);
        };

        Feasibility feasible;
        const auto trees = best_projective_trees(sentence, largest, root, feasible, stop_);
        for (int rank = 0; trees && rank < 20 && trees->next(heads.data(), labels.data()); ++rank)
            if (!valid()) return fail("a tree among the best that is none", words);
        if (kind.labels > 0) return true;

        if (!best_tree_(sentence, largest, root, heads.data(), stop_) != !trees)
            return fail("two views on whether there is a tree", words);
        if (trees && !valid()) return fail("a best tree that is none", words);
        bool fine = true;
        const Feasibility summed = infer_(sentence, root, stop_, [&](auto& sums) {
            sums.run_outside(stop_);
            sums.find_marginals(marginals_);
            values_.resize(words, root);
            values_.for_each([&](double& value, int, int) { value = normal_(random_); });
            covariances_(sums, marginals_, values_, stop_);
            marginals_.for_each([&](double value, int, int) { fine &= value >= 0 && value <= 1; });
            values_.for_each([&](double value, int, int) { fine &= std::isfinite(value); });
            for (std::uint64_t tree = 0; tree < 5; ++tree) {
                RandomStream stream({1, 2}, 3, tree);
                draw_(sums, stream, heads.data());
                fine &= valid();
            }
        });
        if (!summed != !trees) return fail("a sum over trees where there are none, or none where there are", words);
        return fine || fail("marginals, covariances or draws", words);
    }

    std::mt19937_64 random_{1};
    std::normal_distribution<double> normal_;
    std::uniform_real_distribution<double> uniform_;
    StopSignal stop_{[] { return false; }};
    std::vector<int> mark_;
    BestProjectiveTree best_tree_;
    ProjectiveInference infer_;
    EdgeValues marginals_, values_;
    EdgeCovariances covariances_;
    TreeSampler draw_;
};

}  // namespace

int main() { return Fuzz().run() ? 0 : 1; }
