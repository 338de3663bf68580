// SPDX-License-Identifier: Apache-2.0
// ksym_filter: names in logs with symbolizer markup.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/c_api/call.h"
#include "ksym/ksym.h"
#include "ksym/markup/markup_filter.h"
#include "ksym/tools/markup_names.h"

namespace {

using ksym::c_api::Failed;
using ksym::c_api::Guarded;
using ksym::c_api::TakeStruct;

class Callbacks : public ksym::MarkupOutput {
 public:
  explicit Callbacks(const ksym_filter_options& options)
      : log_(options.write_log),
        report_(options.write_report),
        context_(options.context) {}

  void WriteLog(std::string_view text) override { Call(log_, text); }
  void WriteReport(std::string_view text) override { Call(report_, text); }

 private:
  void Call(ksym_write write, std::string_view text) const {
    if (write != nullptr && !text.empty()) {
      write(context_, text.data(), text.size());
    }
  }

  ksym_write log_;
  ksym_write report_;
  void* context_;
};

}  // namespace

struct ksym_filter {
  ksym_filter(const ksym_filter_options& options,
              ksym::MarkupNamesOptions names_options,
              const ksym::MarkupFilterOptions& filter_options)
      : output(options),
        names(std::move(names_options)),
        filter(filter_options, names, output) {}

  // Each borrows those before it.
  Callbacks output;
  ksym::MarkupNames names;
  ksym::MarkupFilter filter;
  bool finished = false;
};

namespace {

constexpr size_t kOldestFilterOptions = sizeof(ksym_filter_options);
constexpr size_t kMinLineBytes = 256;

// False: one of them is null.
bool AddDirectories(const char* const* given, size_t count,
                    std::vector<std::string>& directories) {
  if (given == nullptr) return count == 0;
  for (size_t i = 0; i < count; ++i) {
    if (given[i] == nullptr) return false;
    directories.emplace_back(given[i]);
  }
  return true;
}

ksym_status Open(const ksym_filter_options* given, ksym_filter** filter) {
  if (filter == nullptr) {
    return Failed(KSYM_INVALID, "there is no place for the new filter: null");
  }
  // First, so that a caller can close what a failed call left.
  *filter = nullptr;
  ksym_filter_options taken = {};
  const ksym_status status =
      TakeStruct(given, kOldestFilterOptions, "ksym_filter_options", taken);
  if (status != KSYM_OK) return status;
  if ((taken.flags & ~(KSYM_NO_DEMANGLE | KSYM_COLOR)) != 0 ||
      taken.reserved != 0) {
    return Failed(KSYM_UNSUPPORTED, "ksym_filter_options: unknown flags");
  }
  if (taken.write_log == nullptr) {
    return Failed(KSYM_INVALID, "ksym_filter_options: write_log is null");
  }
  if (taken.max_line_bytes != 0 && taken.max_line_bytes < kMinLineBytes) {
    return Failed(KSYM_INVALID,
                  "ksym_filter_options: max_line_bytes is below 256");
  }
  ksym::MarkupNamesOptions names;
  if ((taken.flags & KSYM_NO_DEMANGLE) != 0) {
    names.demangle = ksym::SymbolizerOptions::Demangle::kOff;
  }
  if (!AddDirectories(taken.debug_directories, taken.debug_directory_count,
                      names.places.debug_directories) ||
      !AddDirectories(taken.gsym_directories, taken.gsym_directory_count,
                      names.places.gsym_directories)) {
    return Failed(KSYM_INVALID, "ksym_filter_options: a directory is null");
  }
  if (taken.kernel_symbols != nullptr) {
    names.kernel_symbols = taken.kernel_symbols;
  }
  ksym::MarkupFilterOptions options;
  if ((taken.flags & KSYM_COLOR) != 0) options.color = ksym::MarkupColor::kOn;
  if (taken.max_line_bytes != 0) options.max_line_bytes = taken.max_line_bytes;
  *filter = new ksym_filter(taken, std::move(names), options);
  return KSYM_OK;
}

}  // namespace

extern "C" {

ksym_status ksym_filter_open(const ksym_filter_options* options,
                             ksym_filter** filter) {
  return Guarded([&] { return Open(options, filter); });
}

ksym_status ksym_filter_push(ksym_filter* filter, const char* bytes,
                             size_t size) {
  return Guarded([&] {
    if (filter == nullptr || (bytes == nullptr && size > 0)) {
      return Failed(KSYM_INVALID, "ksym_filter_push: null");
    }
    if (filter->finished) {
      return Failed(KSYM_INVALID, "ksym_filter_push: the log has ended");
    }
    if (size > 0) filter->filter.Push({bytes, size});
    return KSYM_OK;
  });
}

ksym_status ksym_filter_finish(ksym_filter* filter) {
  return Guarded([&] {
    if (filter == nullptr) {
      return Failed(KSYM_INVALID, "ksym_filter_finish: null");
    }
    // A second call says nothing twice.
    if (!std::exchange(filter->finished, true)) filter->filter.Finish();
    return KSYM_OK;
  });
}

void ksym_filter_close(ksym_filter* filter) { delete filter; }

}  // extern "C"
