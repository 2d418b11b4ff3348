#include "ending.hpp"

#include <pthread.h>

#include <chrono>
#include <thread>

#include "batch.hpp"

namespace spantree::bindings {

namespace {

int under_way = 0;
std::thread::id ending_thread;  // nobody's until then

void end_calls() {
    ending_thread = std::this_thread::get_id();
    while (under_way > 0) {
        const nb::gil_scoped_release released;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

}  // namespace

bool is_ending() { return ending_thread != std::thread::id(); }

void leave_if_ending() {
    if (!is_ending() || std::this_thread::get_id() == ending_thread) return;
    PyErr_SetNone(PyExc_SystemExit);
    throw nb::python_error();
}

CallWithoutGil::CallWithoutGil() { ++under_way; }
CallWithoutGil::~CallWithoutGil() {
    if (under_way > 0) --under_way;  // 0 in a child that was forked by a signal handler within the call
}

void bind_ending(nb::module_&) {
    nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_calls));
    // A child has none of the other threads, and an end of its own.
    pthread_atfork(nullptr, nullptr, [] {
        under_way = 0;
        ending_thread = {};
    });
}

}  // namespace spantree::bindings
