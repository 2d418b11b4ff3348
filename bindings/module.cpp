#include "batch.hpp"

NB_MODULE(_core, module) {
    spantree::bindings::bind_batch(module);
    spantree::bindings::bind_decode(module);
    spantree::bindings::bind_projective(module);
    spantree::bindings::bind_inference(module);
    spantree::bindings::bind_sampling(module);
}
