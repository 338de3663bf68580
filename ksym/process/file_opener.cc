// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/file_opener.h"

namespace ksym {
namespace {

class DirectOpener final : public FileOpener {
 public:
  Result<OpenedFile> Hold(uint32_t pid, const Mapping& mapping) override {
    return HoldMappedOrHostFile(pid, mapping);
  }
  Result<OpenedFile> HoldOfHost(const Mapping& mapping) override {
    return HoldHostFile(mapping);
  }
  Status Open(OpenedFile& file) override { return OpenHeld(file); }
  Result<OpenedFile> OpenPath(uint32_t pid, const std::string& path,
                              Links links) override {
    return pid == 0 ? OpenFileOfHost(path, links)
                    : OpenFileOfProcess(pid, path, links);
  }
};

}  // namespace

std::shared_ptr<FileOpener> DirectFileOpener() {
  static const auto kOpener = std::make_shared<DirectOpener>();
  return kOpener;
}

}  // namespace ksym
