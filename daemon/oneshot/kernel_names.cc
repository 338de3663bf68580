#include "daemon/oneshot/kernel_names.h"

#include <utility>

#include "ksym/base/file.h"

namespace profd {

KernelNames LoadRunningKernelNames() {
  KernelNames names;
  auto symbols = ksym::OpenKernelSymbols("/proc/kallsyms");
  if (symbols) {
    names.symbols.emplace(std::move(*symbols));
    return names;
  }
  names.state = symbols.error().code() == ksym::ErrorCode::kPermission
                    ? KernelSymbolsState::kNoPermission
                    : KernelSymbolsState::kUnreadable;
  names.warning = "kernel frames have no names: " + symbols.error().message();
  return names;
}

KernelNames KernelNamesOfCapture(const RawCapture& capture) {
  KernelNames names;
  names.state = capture.kernel_symbols_state;
  if (capture.kernel_symbols.empty()) return names;
  auto symbols = ksym::KernelSymbolSource::FromBytes(capture.kernel_symbols);
  if (symbols) {
    names.symbols.emplace(std::move(*symbols));
  } else {
    names.state = KernelSymbolsState::kUnreadable;
    names.warning = "the capture's kernel symbols cannot be used: " +
                    symbols.error().message();
  }
  return names;
}

}  // namespace profd
