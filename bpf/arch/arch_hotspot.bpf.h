/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The code that HotSpot makes for the architecture that is built for. */
#pragma once

#if defined(__TARGET_ARCH_x86)
#include "bpf/arch/x86_64_hotspot.bpf.h"
#else
#error "bpf/arch has nothing for this architecture"
#endif
