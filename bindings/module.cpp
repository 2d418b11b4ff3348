#include "batch.hpp"

NB_MODULE(_core, module) {
    arbora::bindings::bind_batch(module);
    arbora::bindings::bind_decode(module);
    arbora::bindings::bind_projective(module);
    arbora::bindings::bind_inference(module);
    arbora::bindings::bind_sampling(module);
}
