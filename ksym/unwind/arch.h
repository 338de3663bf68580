// SPDX-License-Identifier: Apache-2.0
// The architecture that is built for. A directory beside this file has
// everything that differs: registers and their roles (registers.h), what
// linkers and compilers leave undescribed or describe wrongly (known_code.h,
// plt_expression.h, realigned_frame.h). bpf/arch has the same for the sampler.
#pragma once

#if defined(__x86_64__)
#include "ksym/unwind/x86_64/known_code.h"
#include "ksym/unwind/x86_64/plt_expression.h"
#include "ksym/unwind/x86_64/realigned_frame.h"
#include "ksym/unwind/x86_64/registers.h"
#else
#error "ksym/unwind has nothing for this architecture"
#endif
