#pragma once
// The calling thread's name, as `top -H`, `perf` and a debugger show it.
#include <pthread.h>

namespace holdfast {

/// At most 15 characters; longer names are not taken.
inline void name_this_thread(const char* name) {
  (void)pthread_setname_np(pthread_self(), name);
}

}  // namespace holdfast
