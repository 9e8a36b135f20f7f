#pragma once
// HOLDFAST_SANITIZED: 1 in code that AddressSanitizer or ThreadSanitizer is built into. g++ and clang say so in different ways.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HOLDFAST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HOLDFAST_SANITIZED 1
#endif
#endif
#ifndef HOLDFAST_SANITIZED
#define HOLDFAST_SANITIZED 0
#endif
