/* Included ahead of every mlx-c file on Linux, when it is compiled and when its Rust bindings are made. */
#pragma once

/* mlx-c declares its half types only on ARM, but mlx-rs uses them everywhere. Every use is a pointer, so
   only the size matters. clang's __fp16 makes bindgen emit __BindgenFloat16, as it does on macOS. */
#if !defined(__aarch64__)
#define HAS_FLOAT16
#define HAS_BFLOAT16
#if defined(__clang__)
typedef __fp16 float16_t;
#else
typedef unsigned short float16_t;
#endif
typedef unsigned short bfloat16_t;
#endif

/* GCC 12 has no std::format; mlx-c uses plain "{}" only. */
#ifdef __cplusplus
#include <version>
#ifdef __cpp_lib_format
#include <format>
#else
#include <sstream>
#include <string>
#include <string_view>
namespace std {
template <typename... Values>
string format(string_view pattern, const Values&... values) {
  ostringstream out;
  auto put = [&](const auto& value) {
    const auto hole = pattern.find("{}");
    if (hole == string_view::npos) return;
    out << pattern.substr(0, hole) << value;
    pattern.remove_prefix(hole + 2);
  };
  (put(values), ...);
  out << pattern;
  return out.str();
}
}  // namespace std
#endif
#endif
