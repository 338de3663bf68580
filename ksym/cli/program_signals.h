// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ksym {

// What a program does about signals that its files can send it. Programs that
// it executes have their defaults. Call first of all.
//   SIGXFSZ: nothing, so that a limit on the size of files is an error of the
//     write, after which nothing half written stays.
//   SIGBUS: ends with status 1 and a line, "PROGRAM: a file became shorter
//     while it was being read". Files that users give may be mapped then.
// `program` must stay.
void HandleSignalsOfFiles(const char* program);

}  // namespace ksym
