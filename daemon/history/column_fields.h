// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "daemon/history/columns.h"
#include "daemon/history/tables.h"

namespace profd::history {

// Which member of which table a column has; for those who write and read them.

// How the numbers of a column are written.
enum class Code : uint8_t {
  kPlain,     // as they are
  kStep,      // less the one before, which may be negative
  kDistance,  // the element's own place less the number
};

template <typename Element, typename Value>
struct Field {
  Value Element::* member;
  Code code = Code::kPlain;
};

// The columns of each table in their order in the file. A change here is a new
// version of the format.
inline constexpr std::tuple kFunctionFields = {
    Field{&Function::name, Code::kStep},
    Field{&Function::object},
    Field{&Function::build_id},
    Field{&Function::function},
    Field{&Function::file},
    Field{&Function::kind},
    Field{&Function::reason},
    Field{&Function::first_line},
    Field{&Function::flags}};
inline constexpr std::tuple kNodeFields = {
    Field{&Node::parent, Code::kDistance}, Field{&Node::function}};
inline constexpr std::tuple kKindFields = {
    Field{&Kind::name},         Field{&Kind::unit},
    Field{&Kind::event},        Field{&Kind::frequency_hz},
    Field{&Kind::count_period}, Field{&Kind::has_values}};
inline constexpr std::tuple kSettingFields = {Field{&Setting::version},
                                              Field{&Setting::hostname},
                                              Field{&Setting::kernel_release},
                                              Field{&Setting::architecture},
                                              Field{&Setting::cpus},
                                              Field{&Setting::stack_store},
                                              Field{&Setting::unwind},
                                              Field{&Setting::warnings},
                                              Field{&Setting::boot},
                                              Field{&Setting::run},
                                              Field{&Setting::max_stack_depth},
                                              Field{&Setting::kinds}};
inline constexpr std::tuple kPartFields = {
    Field{&Part::start_unix_ns, Code::kStep}, Field{&Part::duration_ns},
    Field{&Part::setting}, Field{&Part::counters}};
inline constexpr std::tuple kCounterFields = {Field{&Counter::name},
                                              Field{&Counter::value}};
inline constexpr std::tuple kSeriesFields = {Field{&Series::comm},
                                             Field{&Series::cgroup},
                                             Field{&Series::pid, Code::kStep},
                                             Field{&Series::tid},
                                             Field{&Series::kind},
                                             Field{&Series::user_state},
                                             Field{&Series::kernel_state},
                                             Field{&Series::parked}};
inline constexpr std::tuple kRowFields = {Field{&Row::series, Code::kStep},
                                          Field{&Row::user, Code::kStep},
                                          Field{&Row::kernel, Code::kStep},
                                          Field{&Row::part, Code::kStep},
                                          Field{&Row::count},
                                          Field{&Row::value}};

inline constexpr std::tuple kCgroupNameFields = {
    Field{&CgroupName::cgroup, Code::kStep}, Field{&CgroupName::pod_namespace},
    Field{&CgroupName::pod}, Field{&CgroupName::container}};
inline constexpr std::tuple kThinningFields = {Field{&Thinning::stacks}};

// The last column is of rows as well. It is empty where no row has a slice.
inline constexpr Field kSliceField = {&Row::slice};

// All tables' fields; the two more are the texts' sizes and their bytes.
inline constexpr size_t kFields =
    std::tuple_size_v<decltype(kFunctionFields)> +
    std::tuple_size_v<decltype(kNodeFields)> +
    std::tuple_size_v<decltype(kKindFields)> +
    std::tuple_size_v<decltype(kSettingFields)> +
    std::tuple_size_v<decltype(kPartFields)> +
    std::tuple_size_v<decltype(kCounterFields)> +
    std::tuple_size_v<decltype(kSeriesFields)> +
    std::tuple_size_v<decltype(kRowFields)> +
    std::tuple_size_v<decltype(kCgroupNameFields)> +
    std::tuple_size_v<decltype(kThinningFields)> + 1;
static_assert(kFields + 2 == kColumns);

// Those of strings come first.
inline constexpr size_t kFirstFunctionColumn = 2;
inline constexpr size_t kFirstNodeColumn =
    kFirstFunctionColumn + std::tuple_size_v<decltype(kFunctionFields)>;
inline constexpr size_t kFirstKindColumn =
    kFirstNodeColumn + std::tuple_size_v<decltype(kNodeFields)>;
inline constexpr size_t kFirstRowColumn =
    kFirstKindColumn + std::tuple_size_v<decltype(kKindFields)> +
    std::tuple_size_v<decltype(kSettingFields)> +
    std::tuple_size_v<decltype(kPartFields)> +
    std::tuple_size_v<decltype(kCounterFields)> +
    std::tuple_size_v<decltype(kSeriesFields)>;
// Part::counters, which those of counters and of series follow.
inline constexpr size_t kCountersOfParts =
    kFirstKindColumn + std::tuple_size_v<decltype(kKindFields)> +
    std::tuple_size_v<decltype(kSettingFields)> +
    std::tuple_size_v<decltype(kPartFields)> - 1;
inline constexpr size_t kSliceColumn = kColumns - 1;
inline constexpr size_t kFirstThinningColumn =
    kSliceColumn - std::tuple_size_v<decltype(kThinningFields)>;
// Row::user and Row::kernel.
inline constexpr size_t kStacksOfRows[] = {kFirstRowColumn + 1,
                                           kFirstRowColumn + 2};

// Calls `call` with each field and the number of its column, from `first` on;
// the number after the last one.
template <typename Fields, typename Call>
size_t ForEachField(const Fields& fields, size_t first, const Call& call) {
  std::apply([&](const auto&... field) { (call(field, first++), ...); },
             fields);
  return first;
}

}  // namespace profd::history
