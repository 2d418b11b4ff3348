#include "batch.hpp"

NB_MODULE(_core, module) {
    // At the end of a process Python leaves modules and what they hold as they are; nothing is leaked by that.
    nanobind::set_leak_warnings(false);
    spantree::bindings::bind_ending(module);
    spantree::bindings::bind_batch(module);
    spantree::bindings::bind_lent_memory(module);
    spantree::bindings::bind_plain(module);
    spantree::bindings::bind_decode(module);
    spantree::bindings::bind_inference(module);
    spantree::bindings::bind_sampling(module);
    spantree::bindings::bind_annotation(module);
    spantree::bindings::bind_entries(module);
    spantree::bindings::bind_xla(module);
}
