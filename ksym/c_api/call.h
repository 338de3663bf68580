// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/ksym.h"

namespace ksym::c_api {

// Makes `message` the thread's last error and returns `status`. Allocates
// nothing, since it has to say that there is no memory.
ksym_status Failed(ksym_status status, std::string_view message) noexcept;
ksym_status Failed(const Error& error) noexcept;

// What every function runs in: no exception gets out.
template <typename Body>
ksym_status Guarded(const Body& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Failed(KSYM_NO_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return Failed(KSYM_INTERNAL, error.what());
  } catch (...) {
    return Failed(KSYM_INTERNAL, "a callback threw");
  }
}

// Takes the caller's struct, which may be older (what it lacks is 0) or newer
// (what is not known here must be 0). `oldest`: the size of the first version.
template <typename T>
ksym_status TakeStruct(const T* given, size_t oldest, std::string_view name,
                       T& taken) {
  // Larger than any will be: a size that was not set.
  constexpr size_t kMaxSize = 4096;
  taken = T{};
  if (given == nullptr || given->size < oldest || given->size > kMaxSize) {
    return Failed(KSYM_INVALID, std::string(name) +
                                    ": null, or its size is not set to sizeof");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(sizeof(T), given->size), bytes + given->size,
                  [](auto byte) { return byte != 0; })) {
    return Failed(KSYM_UNSUPPORTED,
                  std::string(name) + ": is newer than this library");
  }
  std::memcpy(&taken, given, std::min(sizeof(T), given->size));
  return KSYM_OK;
}

}  // namespace ksym::c_api
