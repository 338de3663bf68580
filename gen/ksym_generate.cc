// SPDX-License-Identifier: Apache-2.0
#include "gen/ksym_generate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <span>
#include <string>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/output_file.h"
#include "ksym/demangle/demangle.h"
#include "ksym/kernel/kallsyms_blob_writer.h"
#include "ksym/kernel/kallsyms_reader.h"
#include "ksym/kernel/kernel_symbol_map_builder.h"
#include "ksym/kernel/symbol_order.h"

namespace gen {
namespace {

bool Wanted(const ksym::KallsymsLine& line, const KsymOptions& options) {
  if (!options.types.empty() &&
      options.types.find(line.type) == std::string::npos) {
    return false;
  }
  return (!options.stext || line.address >= *options.stext) &&
         (!options.etext || line.address < *options.etext);
}

// One of the two tables while it is filled.
class TableBuilder {
 public:
  explicit TableBuilder(KsymOptions::Format format) : format_(format) {}

  ksym::Status Add(const ksym::KallsymsLine& line, std::string_view name) {
    if (format_ == KsymOptions::Format::kCompact) {
      return map_.Add({line.address, line.type, name, line.module});
    }
    blob_.push_back(
        {line.address, line.type, std::string(ksym::StripCfiSuffix(name))});
    return {};
  }

  ksym::Result<std::vector<std::byte>> Build() && {
    if (format_ == KsymOptions::Format::kBlob) {
      return ksym::WriteKallsymsBlob(std::move(blob_));
    }
    const auto map = std::move(map_).Build();
    if (!map) return ksym::Fail(map.error());
    return std::vector<std::byte>(map->bytes().begin(), map->bytes().end());
  }

 private:
  KsymOptions::Format format_;
  ksym::KernelSymbolMapBuilder map_;
  std::vector<ksym::BlobSymbol> blob_;
};

}  // namespace

ksym::Result<std::vector<std::byte>> GenerateKsym(int fd,
                                                  std::string_view input,
                                                  const KsymOptions& options) {
  TableBuilder table(options.format);
  ksym::KallsymsReport report;
  bool add_failed = false;
  const auto add = [&](const ksym::KallsymsLine& line) -> ksym::Status {
    // After a malformed line nothing is made, so nothing more is added.
    if (report.malformed > 0 || !Wanted(line, options)) return {};
    ksym::Status added;
    if (options.names == KsymOptions::Names::kDemangled) {
      added = table.Add(line, ksym::Demangle(line.name));
    } else {
      added = table.Add(line, line.name);
    }
    add_failed = !added;
    return added;
  };
  auto read = ksym::ReadKallsyms(fd, report, add);
  if (report.malformed > 0) {
    return ksym::Fail(
        ksym::ErrorCode::kCorrupt,
        fmt::format("{}:{}: {}", input, report.first_malformed_line,
                    report.first_malformed_reason));
  }
  // The error is about a line then, which the reader's own errors are not.
  if (add_failed) {
    return ksym::Fail(
        std::move(read.error())
            .WithContext(fmt::format("{}:{}", input, report.lines)));
  }
  if (!read) return ksym::Fail(std::move(read.error()).WithContext(input));
  auto bytes = std::move(table).Build();
  if (!bytes) return ksym::Fail(std::move(bytes.error()).WithContext(input));
  return bytes;
}

ksym::Status GenerateKsymFile(const KsymOptions& options) {
  ksym::UniqueFd file;
  if (!options.input.empty()) {
    auto opened = ksym::OpenInput(options.input);
    if (!opened) return ksym::Fail(std::move(opened.error()));
    file = std::move(*opened);
  }
  const bool from_stdin = options.input.empty();
  const auto bytes =
      GenerateKsym(from_stdin ? STDIN_FILENO : file.get(),
                   from_stdin ? "<stdin>" : options.input, options);
  if (!bytes) return ksym::Fail(bytes.error());
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()),
                              bytes->size());
  if (options.output.empty()) {
    auto written = ksym::WriteAll(STDOUT_FILENO, text);
    if (written) return {};
    return ksym::Fail(
        std::move(written.error()).WithContext("standard output"));
  }
  return ksym::WriteOutputFile(options.output, text);
}

}  // namespace gen
