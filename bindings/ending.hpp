// What becomes of calls that are under way in other threads when the interpreter ends.
//
// Before 3.14, CPython ends a thread that asks for the GIL then, in a way that C++ functions cannot be left by: the process
// aborts. So before that calls of other threads are stopped and waited for, as if by Ctrl-C, and later ones are refused.
// All of this is for who holds the GIL.
#pragma once

namespace spantree::bindings {

/// Whether it has begun; what is called from now on must keep the GIL.
bool is_ending();

/// Raises SystemExit, which ends a thread without a word, if the interpreter ends and this is not the thread that sees to it.
void leave_if_ending();

/// A call that gives the GIL away: made before that, and gone when it has the GIL again.
class CallWithoutGil {
public:
    CallWithoutGil();
    ~CallWithoutGil();
    CallWithoutGil(const CallWithoutGil&) = delete;
    CallWithoutGil& operator=(const CallWithoutGil&) = delete;
};

}  // namespace spantree::bindings
