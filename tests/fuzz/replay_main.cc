// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target over files and directories given as arguments: the corpus
// replay that ctest does with any compiler. Each input gets a buffer of its
// exact size, so that a sanitizer sees the first byte read past its end.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

bool Replay(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto exact = std::make_unique<uint8_t[]>(text.size());
  std::memcpy(exact.get(), text.data(), text.size());
  LLVMFuzzerTestOneInput(exact.get(), text.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    const std::filesystem::path root(argv[i]);
    if (!std::filesystem::is_directory(root)) {
      if (!Replay(root)) return 1;
      ++inputs;
      continue;
    }
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      if (!Replay(entry.path())) return 1;
      ++inputs;
    }
  }
  std::printf("replayed %zu inputs\n", inputs);
  return inputs == 0 ? 1 : 0;
}
