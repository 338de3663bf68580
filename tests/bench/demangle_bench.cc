// SPDX-License-Identifier: Apache-2.0
// What a name costs when it is shown for the first time.

#include <benchmark/benchmark.h>

#include <string>
#include <string_view>

#include "ksym/demangle/demangle.h"

namespace ksym {
namespace {

void BM_Demangle(benchmark::State& state, std::string_view name) {
  size_t bytes = 0;
  for (auto _ : state) {
    const std::string text = Demangle(name);
    benchmark::DoNotOptimize(text.data());
    bytes = text.size();
  }
  state.counters["mangled_bytes"] = static_cast<double>(name.size());
  state.counters["bytes"] = static_cast<double>(bytes);
}

// Most names of most programs: nothing to do.
BENCHMARK_CAPTURE(BM_Demangle, c, "__libc_start_call_main");
BENCHMARK_CAPTURE(BM_Demangle, cpp_short, "_ZNSt6localeC1Ev");
BENCHMARK_CAPTURE(BM_Demangle, cpp_template,
                  "_ZNSt8_Rb_treeINSt7__cxx1112basic_stringIcSt11char_"
                  "traitsIcESaIcEEESt4pairI"
                  "KS5_iESt10_Select1stIS8_ESt4lessIS5_ESaIS8_EE24_M_get_"
                  "insert_unique_posERS7"
                  "_");
BENCHMARK_CAPTURE(BM_Demangle, rust_v0,
                  "_RNvXNtNtCs3h0eNd2Y4IR_4core3fmt3numyNtB4_5Debug3fmt");
BENCHMARK_CAPTURE(BM_Demangle, rust_legacy,
                  "_ZN102_$LT$core..iter..adapters..map..Map$LT$I$C$F$GT$$u20$"
                  "as$u20$core..iter..traits..iterator..Iterator$GT$4next17ha9f"
                  "60313352febe0E");
BENCHMARK_CAPTURE(BM_Demangle, d, "_D4core6memory2GC7collectFNbZv");
// 188 bytes that stand for 400 MB: given up at the bound.
BENCHMARK_CAPTURE(
    BM_Demangle, hostile,
    "_Z1f1BIS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_IS_I"
    "S_IS_IS_I1AS0_ES1_ES2_ES3_ES4_ES5_ES6_ES7_ES8_ES9_ESA_ESB_ESC_ESD_ESE_ESF_"
    "ESG_ESH_ESI_ESJ_ESK_ESL_ESM_ESN_ESO_ESP_E");

}  // namespace
}  // namespace ksym

BENCHMARK_MAIN();
