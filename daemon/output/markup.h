// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/output/options.h"
#include "daemon/output/output_buffer.h"
#include "daemon/raw/raw_file.h"

namespace profd {

// A capture as a log with symbolizer markup: addresses, counts and context, no
// names, of the samples of one kind. Each process begins with {{{reset}}}, then
// come the modules and mmaps that its samples are in, the kernel's among them,
// then its stacks, each with how many samples it had, the kernel's frames
// first:
//   {{{reset}}}
//   process 1234: 12 samples
//   {{{module:0:/usr/bin/app:elf:83238ab56ba10497}}}
//   {{{mmap:0x55d0c0a01000:0x1000:load:0:rx:0x1000}}}
//   12 samples in app
//   {{{bt:0:0x55d0c0a01123:pc}}}
//   {{{bt:1:0x55d0c0a01456:ra}}}
// A kind with values has these in place of the numbers of samples: "900
// nanoseconds in app". By threads a stack is that of one, "12 samples in app,
// thread 1235", else of all of its process, also where the capture tells them
// apart. The same capture gives the same bytes, whatever the order of its
// samples.
void WriteMarkup(const RawCapture& capture, SampleKindId kind,
                 OutputOptions::By by, OutputBuffer& out);

}  // namespace profd
