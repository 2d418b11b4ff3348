// How many edges may leave ROOT.
#pragma once

namespace spantree {

/// single: exactly one, as in Universal Dependencies; multi: one or more.
enum class Root { single, multi };

}  // namespace spantree
