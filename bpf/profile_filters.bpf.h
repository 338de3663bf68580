/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which samples are wanted, and the programs that keep the selected processes
 * up to date while children come and go.
 */
#pragma once

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/profile_abi.h"
#include "bpf/profile_maps.bpf.h"

static __always_inline bool in_selected_mntns(struct task_struct *task)
{
	struct nsproxy *nsproxy;
	struct mnt_namespace *mnt_ns;
	__u32 inum = 0;
	__u64 id;

	/* The task is exiting and has left it: it may have been anybody's. */
	if (bpf_core_read(&nsproxy, sizeof(nsproxy), &task->nsproxy) ||
	    bpf_core_read(&mnt_ns, sizeof(mnt_ns), &nsproxy->mnt_ns) ||
	    bpf_core_read(&inum, sizeof(inum), &mnt_ns->ns.inum))
		return false;
	id = inum;
	return bpf_map_lookup_elem(&mount_namespaces, &id) != NULL;
}

static __always_inline bool passes_filters(struct task_struct *task,
					   __u64 pid_tgid)
{
	__u32 id;

	if (!include_idle && (__u32)pid_tgid == 0)
		return false;
	if (filter_pids || filter_tids) {
		id = filter_tids ? (__u32)pid_tgid : (__u32)(pid_tgid >> 32);
		if (!bpf_map_lookup_elem(&selected_ids, &id))
			return false;
	}
	if (filter_cgroup &&
	    bpf_current_task_under_cgroup(&selected_cgroup, 0) != 1)
		return false;
	if (filter_cgroup_ids) {
		__u64 cgroup = bpf_get_current_cgroup_id();

		if (!bpf_map_lookup_elem(&cgroup_ids, &cgroup))
			return false;
	}
	return !filter_mntns || in_selected_mntns(task);
}

/* A selected process's child is selected before it runs for the first time. */
SEC("raw_tp/sched_process_fork")
int follow_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0];
	struct task_struct *child = (void *)ctx->args[1];
	__u32 parent_id = 0, child_id = 0, zero = 0;
	struct profile_stats *counters;
	__u8 selected = 1;

	bpf_core_read(&parent_id, sizeof(parent_id), &parent->tgid);
	bpf_core_read(&child_id, sizeof(child_id), &child->tgid);
	/* A new thread has its maker's process. */
	if (parent_id == child_id ||
	    !bpf_map_lookup_elem(&selected_ids, &parent_id))
		return 0;
	if (bpf_map_update_elem(&selected_ids, &child_id, &selected, BPF_ANY)) {
		counters = bpf_map_lookup_elem(&stats, &zero);
		if (counters)
			counters->follow_full++;
	}
	return 0;
}

/* The pid is free for others from here on. */
SEC("raw_tp/sched_process_free")
int follow_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	__u32 tid = 0, tgid = 0;

	bpf_core_read(&tid, sizeof(tid), &task->pid);
	bpf_core_read(&tgid, sizeof(tgid), &task->tgid);
	/* Other threads go before the first one, which has the process's id. */
	if (tid == tgid)
		bpf_map_delete_elem(&selected_ids, &tgid);
	return 0;
}
