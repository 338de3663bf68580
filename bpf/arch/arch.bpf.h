/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The architecture that is built for. A file beside this one has everything
 * that differs: registers and their roles, user mode, system calls.
 */
#pragma once

#include "bpf/profile_maps.bpf.h"

#if defined(__TARGET_ARCH_x86)
#include "bpf/arch/x86_64.bpf.h"
#else
#error "bpf/arch has nothing for this architecture"
#endif
