/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The registers with which a thread left user space, as the kernel keeps them.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_maps.bpf.h"
#include "bpf/unwind_maps.bpf.h"

/* Before bpf_task_pt_regs() was there no kernel padded this stack's top. */
static __always_inline bool regs_by_stack(struct task_struct *task,
					  struct arch_regs *regs)
{
	struct task_struct___stack *with_stack = (void *)task;
	void *stack = NULL;

	if (bpf_core_read(&stack, sizeof(stack), &with_stack->stack))
		return false;
	return bpf_probe_read_kernel(regs, sizeof(*regs),
				     stack + ARCH_KERNEL_STACK_BYTES -
					 sizeof(*regs)) == 0;
}

/* `task` is one that the verifier knows as such. */
static __always_inline bool regs_of(struct task_struct *task,
				    struct arch_regs *regs)
{
	long at;

	if (!has_task_pt_regs)
		return regs_by_stack(task, regs);
	at = bpf_task_pt_regs(task);
	return bpf_probe_read_kernel(regs, sizeof(*regs), (void *)at) == 0;
}

static __always_inline bool user_regs(struct task_struct *task,
				      struct arch_regs *regs)
{
	if (!has_task_pt_regs)
		return regs_by_stack(task, regs);
	return regs_of((void *)bpf_get_current_task_btf(), regs);
}

/* See current_start() for why it is a function of its own. */
__noinline int current_has_mm(void)
{
	struct task_struct *task;

	if (!has_task_pt_regs)
		return 0;
	task = (void *)bpf_get_current_task_btf();
	return task->mm != NULL;
}

/* Whether the current task has user space; none that is exiting has. */
static __always_inline bool has_user_space(struct task_struct *task)
{
	struct mm_struct *mm = NULL;

	if (has_task_pt_regs)
		return current_has_mm();
	bpf_core_read(&mm, sizeof(mm), &task->mm);
	return mm != NULL;
}
