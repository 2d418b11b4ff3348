// Seeds as they come from Python: one key of two 64-bit words for all sentences of a batch, or one for each.
#pragma once

#include <stdexcept>
#include <vector>

#include "batch.hpp"
#include "spantree/sample/random.hpp"

namespace spantree::bindings {

using Keys = nb::ndarray<const std::uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

class KeptStreams {
public:
    KeptStreams(const Keys& keys, std::uint64_t first_sentence, const Batch& batch) : keys_(keys.shape(0)) {
        if (keys_.size() != 1 && keys_.size() != batch.size())
            throw std::invalid_argument("one key, or one a sentence");
        for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = {keys(i, 0), keys(i, 1)};
        streams_ = {keys_.data(), keys_.size() != 1, first_sentence};
    }
    SentenceStreams operator[](std::size_t i) const { return streams_[i]; }

private:
    std::vector<Key> keys_;
    BatchStreams streams_;
};

}  // namespace spantree::bindings
