// A program outside the library's own tree: the best tree of one sentence, and how probable each of its edges is.
#include <cstdio>
#include <spantree/spantree.hpp>
#include <vector>

int main() {
    // ROOT, She, saw, him: scores[head][dependent].
    const std::vector<float> scores{0, 1, 6, 1,  //
                                    0, 0, 1, 0,  //
                                    0, 5, 0, 4,  //
                                    0, 1, 2, 0};
    const spantree::ScoresView sentence{.data = scores.data(),
                                        .dtype = spantree::DType::f32,
                                        .batch = 1,
                                        .nodes = 4,
                                        .batch_stride = 16,
                                        .head_stride = 4,
                                        .dep_stride = 1};
    std::vector<int> heads(4), status(1);
    std::vector<float> marginals(16);
    float log_z = 0, best = 0;
    spantree::argmax(sentence, {}, {heads.data(), spantree::IntType::i32, 4}, {}, &best, {status.data()});
    spantree::marginals(sentence, {}, &log_z, {marginals.data(), spantree::DType::f32, 16, 4, 1}, {status.data()});
    if (status[0] != 0) return 1;
    std::printf("best %.0f, log Z %.4f\n", best, log_z);
    for (int word = 1; word <= 3; ++word)
        std::printf("%d <- %d with probability %.3f\n", word, heads[word], marginals[heads[word] * 4 + word]);
}
