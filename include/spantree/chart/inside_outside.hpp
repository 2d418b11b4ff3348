// Sums over all projective trees of a sentence: Z, and the marginal probability of every edge. O(n^3) time; memory for
// twelve tables of n (n + 8) numbers.
//
// Inside: chart.hpp over (+, *). Outside: outside.hpp. Only sums and products of nonnegative numbers, so each marginal
// is right to a few units in the last place of its own, however small it is, as long as no number leaves the ring's
// range.
//
// When doubles have the range. A number that underflows loses less than 2^-1022. What is lost of an item x changes the
// weight of the trees, or of those with some edge, by at most that times bar(x), and what is lost of bar(x) by at most that
// times x. There are fewer than 4 (n + 1)^3 terms. So all marginals are right but for an absolute error of
//
//     2^-1022 * 4 (n + 1)^3 * max(x, bar(x)) / Z  <=  2^-890      if     max(x, bar(x)) <= 2^100 Z   and n <= 300,
//
// which is checked when all is done. Before the outside is known: bar(x) is a sum over fewer than 6.75^n contexts of
// products of fewer than n weights, and Z has all its digits if 2^-1022 * 4 (n + 1)^3 * (6.75 top)^n <= 2^-60 Z with `top` the
// largest weight. (A sentence of n words has fewer than 6.75^n projective trees.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "../batch/centred.hpp"
#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "chart.hpp"
#include "edge_values.hpp"
#include "edge_weights.hpp"
#include "outside.hpp"
#include "sum_product.hpp"

namespace spantree::projective {

/// What the range of doubles has to hold of a sentence's sums.
class RangeOfSums {
public:
    /// Of trees that matter, and as far as `holds_every_tree` is asked of all trees.
    explicit RangeOfSums(const CentredScores& scores)
        : words_(scores.words()), highest_(scores.extent().highest), lowest_product_(scores.extent().lowest_product) {
        if (scores.only_shifted()) return;
        highest_ = lowest_product_ = 0.0;
        for (int dep = 1; dep <= words_; ++dep) {
            double lowest = 0.0;
            for (int head = 0; head <= words_; ++head) {
                highest_ = std::max(highest_, scores(head, dep));
                const double score = scores.of_every_tree(head, dep);
                if (score > minus_infinity<double>) lowest = std::min(lowest, score);
            }
            lowest_product_ += lowest;
        }
    }

    /// Whether no sum can become infinite: 2^1000 leaves room for a few of them. With more than 300 words it is seldom so, and
    /// not tried: 6.75^300 = 2^827.
    bool can_fit() const { return words_ <= 300 && log_contexts() <= 1000.0 * std::numbers::ln2; }

    /// Whether every product of one weight per word, and so every tree, is a normal number: e^-600 = 2^-866.
    bool holds_every_tree() const { return can_fit() && lowest_product_ >= -600.0; }

    /// Whether Z, as found in doubles, has all its digits.
    bool holds_total(double log_total) const {
        const double lost = -1022.0 + 2.0 + 3.0 * std::log2(words_ + 1.0);
        return log_total >= (lost + 60.0) * std::numbers::ln2 + log_contexts();
    }

private:
    double log_contexts() const { return words_ * (std::log(6.75) + highest_); }

    int words_;
    double highest_, lowest_product_;
};

namespace details {

/// Divides a matrix, [head, dep], by the sums of its columns but the first.
struct DivideByColumnSums {
    template <class Registers>
    struct Kernel {
        static void run(double* matrix, int words) {
            with_lanes<Registers::width>(words, [&]<int lanes>() __attribute__((always_inline)) {
                const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(words + 1) * (words + 1);
                const auto divide = [&]<int some>(int dep) __attribute__((always_inline)) {
                    Vector<double, some> sum = {};
                    for (double* at = matrix + dep; at < matrix + size; at += words + 1) sum += load<some>(at);
                    for (double* at = matrix + dep; at < matrix + size; at += words + 1)
                        store(at, load<some>(at) / sum);
                };
                int dep = 1;
                for (; dep + lanes <= words + 1; dep += lanes) divide.template operator()<lanes>(dep);
                for (; dep <= words; ++dep) divide.template operator()<1>(dep);
            });
        }
    };
};

/// The largest of a table's nonnegative numbers.
struct Largest {
    template <class Registers>
    struct Kernel {
        static double run(const Table<Linear<>>& table) {
            constexpr int lanes = Registers::width;
            Vector<double, lanes> top{};
            table.for_each_row([&](const double* first, int count) {
                for (int i = 0; i < count; i += lanes)  // there are zeros behind a row's last item
                    top = larger_of(spantree::load<lanes>(first + i), top);
            });
            return largest_lane<double, lanes>(top);
        }
    };
};

}  // namespace details

template <class Ring>
class InsideOutside {
public:
    using Scalar = typename Ring::Scalar;
    using Number = typename Scalar::Block;

    /// Finds Z; -inf is its logarithm if there is no tree. With `every_tree`, trees too unlikely to matter are there too.
    void run_inside(const CentredScores& scores, Root root, bool every_tree, StopSignal& stop) {
        words_ = scores.words();
        root_ = root;
        weights_.fill(scores, root, every_tree);
        inside_.resize(words_, root);
        projective::run_inside(inside_, weights_.right, weights_.left, stop);
        total_ = root == Root::multi ? get(inside_.right, 0, last()) : words_ > 0 ? total_of_roots() : one();
        log_total_ = Scalar::log(total_);
    }

    /// As after run_inside, from one that did.
    void copy_inside(const InsideOutside& from) {
        words_ = from.words_;
        root_ = from.root_;
        weights_ = from.weights_;
        inside_ = from.inside_;
        total_ = from.total_;
        log_total_ = from.log_total_;
    }

    /// After run_inside, if there is a tree.
    void run_outside(StopSignal& stop) {
        projective::run_outside(inside_, weights_.right, weights_.left, seeded_outside(), stop);
    }

    /// For somebody else to fill: with its seeds, and zero elsewhere.
    OutsideChart<Ring>& seeded_outside() {
        outside_.resize(words_, root_);
        outside_.right.clear();
        outside_.left.clear();
        if (root_ == Root::multi) {
            Scalar::store(outside_.right.at(0, last()), plane(), one());
        } else {
            for (int node = 0; node <= last(); ++node) {
                Scalar::store(outside_.left.at(0, node), plane(), seed_left(node));
                Scalar::store(outside_.right.at(node, last()), plane(), seed_right(node));
            }
        }
        return outside_;
    }

    /// After run_outside: a matrix of marginals, [head, dep], 0 where there is no edge. The edges into a word add up to 1
    /// but for rounding errors; dividing by their sum leaves one in the last bit or nearly.
    void find_marginals(std::vector<double>& marginals) const {
        const int first = inside_.first();
        const auto width = static_cast<std::size_t>(words_) + 1;
        marginals.resize(width * width);
        const Share share(total_);
        for (int i = 0; i <= last(); ++i) {
            double* const row = marginals.data() + static_cast<std::size_t>(i + first) * width + first;
            row[-first] = row[i] = 0.0;
            for (int j = 1 - first; j < i; ++j)
                row[j] = share(get(inside_.arc_left, j, i), get(outside_.arc_left, j, i));
            for (int j = i + 1; j <= last(); ++j)
                row[j] = share(get(inside_.arc_right, i, j), get(outside_.arc_right, i, j));
        }
        if (root_ == Root::single) {
            marginals[0] = 0.0;
            for (int node = 0; node <= last(); ++node)
                marginals[static_cast<std::size_t>(node) + 1] =
                    share(seed_right(node), get(inside_.right, node, last()));
        }
        dispatch_on_registers<details::DivideByColumnSums>(marginals.data(), words_);
    }

    /// Whether no item, and nothing that surrounds one, is more than 2^100 Z.
    bool in_range() const
        requires(Ring::parts == 1)
    {
        const auto fine = [&](const Chart<Ring>& chart) {
            for (const auto* table : {&chart.right, &chart.left, &chart.link, &chart.arc_right, &chart.arc_left})
                if (dispatch_on_registers<details::Largest>(*table) > 0x1p100 * total_[0]) return false;
            return true;
        };
        return fine(inside_) && fine(outside_);
    }

    /// Has everything brought near that questions read.
    void fetch() const {
        inside_.fetch();
        outside_.fetch();
        weights_.right.fetch();
        weights_.left.fetch();
    }

    double log_total() const { return log_total_; }
    /// The logarithm of Z over a product of weights.
    double log_total_over(const Ranged<1>::Block& product) const {
        return (extended(total_) / extended(product)).log();
    }
    const Chart<Ring>& inside() const { return inside_; }
    const OutsideChart<Ring>& outside() const { return outside_; }
    const EdgeWeights<Ring>& weights() const { return weights_; }
    int words() const { return words_; }
    Root root() const { return root_; }
    int last() const { return inside_.nodes() - 1; }
    std::ptrdiff_t plane() const { return inside_.plane(); }
    std::size_t bytes() const { return weights_.bytes() + inside_.bytes() + outside_.bytes(); }

    static Number get(const Table<Ring>& table, int i, int j) { return Scalar::load(table.at(i, j), table.plane()); }

    // Single root. `rooted` is the sum over the trees whose root word is `node`.
    Number rooted(int node) const { return Scalar::times(seed_right(node), get(inside_.right, node, last())); }
    double root_marginal(int node) const { return Scalar::ratio(rooted(node), total_)[0]; }
    Number seed_left(int node) const {
        return Scalar::times(weights_.from_root(node), get(inside_.right, node, last()));
    }
    Number seed_right(int node) const { return Scalar::times(get(inside_.left, 0, node), weights_.from_root(node)); }

private:
    static Extended extended(const Linear<1>::Block& x) { return Extended(x[0]); }
    static Extended extended(const Ranged<1>::Block& x) { return {x.mantissa[0], x.exponent[0]}; }
    static Number one() { return Scalar::exp(Vector<double, 1>{0.0}); }

    Number total_of_roots() const {
        Number total = rooted(0);
        for (int node = 1; node <= last(); ++node) total = Scalar::plus(total, rooted(node));
        return total;
    }

    /// What an item and all that surrounds it have of the total.
    class Share {
    public:
        explicit Share(const Number& total) : over_total_(Scalar::inverse(total)) {}
        double operator()(const Number& item, const Number& around) const {
            return Scalar::value(Scalar::times(item, Scalar::times(around, over_total_)));
        }

    private:
        Number over_total_;
    };

    int words_ = 0;
    Root root_ = Root::single;
    EdgeWeights<Ring> weights_;
    Chart<Ring> inside_;
    OutsideChart<Ring> outside_;
    Number total_{};
    double log_total_ = 0.0;
};

}  // namespace spantree::projective
