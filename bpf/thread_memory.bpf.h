/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Whether another thread's memory can be read without waiting for what may not
 * answer: a page of a file comes from its file system, which can be a program
 * of anybody, and so can what a page fault is left to.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_maps.bpf.h"
#include "bpf/runtime/runtime.bpf.h"

struct super_block___magic {
	unsigned long s_magic;
} __core;
struct vm_userfaultfd_ctx {
	void *ctx;
} __core;
struct vm_area_struct___memory {
	struct file *vm_file;
	struct vm_userfaultfd_ctx vm_userfaultfd_ctx;
} __core;

/* File systems of this machine's memory and disks (linux/magic.h). */
static __always_inline bool is_local_magic(unsigned long magic)
{
	switch (magic) {
	case 0x01021994: /* tmpfs, and memory that processes share */
	case 0x858458f6: /* ramfs */
	case 0x958458f6: /* hugetlbfs */
	case 0xef53:	 /* ext2, ext3, ext4 */
	case 0x58465342: /* xfs */
	case 0x9123683e: /* btrfs */
	case 0xf2f52010: /* f2fs */
	case 0xca451a4e: /* bcachefs */
	case 0x2fc12fc1: /* zfs */
	case 0x73717368: /* squashfs */
	case 0xe0f5e1e2: /* erofs */
	case 0x794c7630: /* overlayfs */
	case 0x4d44:	 /* vfat */
		return true;
	default:
		return false;
	}
}

/* A callback of bpf_find_vma(). `answers` is a bool. */
static long look_at_vma(struct task_struct *task __attribute__((unused)),
			struct vm_area_struct *area, void *answers)
{
	struct vm_area_struct___memory *vma = (void *)area;
	struct super_block___magic *magical;
	struct super_block *super = NULL;
	struct file *file = NULL;
	struct inode *inode = NULL;
	unsigned long magic = 0;
	void *handler = NULL;

	/* Without CONFIG_USERFAULTFD it is empty. */
	if (bpf_core_field_exists(vma->vm_userfaultfd_ctx.ctx))
		bpf_core_read(&handler, sizeof(handler),
			      &vma->vm_userfaultfd_ctx.ctx);
	if (handler)
		return 0;
	if (bpf_core_read(&file, sizeof(file), &vma->vm_file))
		return 0;
	if (file) {
		if (bpf_core_read(&inode, sizeof(inode), &file->f_inode) ||
		    bpf_core_read(&super, sizeof(super), &inode->i_sb))
			return 0;
		magical = (void *)super;
		if (bpf_core_read(&magic, sizeof(magic), &magical->s_magic) ||
		    !is_local_magic(magic))
			return 0;
	}
	*(bool *)answers = true;
	return 0;
}

/*
 * Whether the page that has the address answers. False as well where the
 * process's mappings are being changed: a read would wait for that.
 */
static __always_inline bool answers_at(void *task, __u64 address)
{
	bool answers = false;

	bpf_find_vma(task, address, look_at_vma, &answers, 0);
	return answers;
}

/*
 * The same of a range that is shorter than two pages. `task` is one that the
 * verifier knows as such.
 */
static __always_inline bool memory_answers(void *task, __u64 address,
					   __u32 bytes)
{
	return answers_at(task, address) &&
	       answers_at(task, address + bytes - 1);
}
