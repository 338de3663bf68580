/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has Python inside, as a library:
 *
 *   embed main ARGUMENT...       is the python command
 *   embed thread FILE ARGUMENT...        runs the file in a thread of its own
 *   embed interpreter FILE ARGUMENT...   in a second interpreter
 *
 * What it needs of the library is declared here, as there are no headers of the
 * versions that it is linked with.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int Py_BytesMain(int argc, char** argv);
void Py_Initialize(void);
void* PyEval_SaveThread(void);
int PyGILState_Ensure(void);
void* Py_NewInterpreter(void);
int PyRun_SimpleStringFlags(const char* text, void* flags);

static char Program[65536];

/* Appends the text as a Python string. */
static void AppendQuoted(const char* text) {
  char* at = Program + strlen(Program);

  *at++ = '"';
  for (; *text && at < Program + sizeof(Program) - 8; text++) {
    if (*text == '"' || *text == '\\') *at++ = '\\';
    *at++ = *text;
  }
  strcpy(at, "\"");
}

static void MakeProgram(char** arguments) {
  strcpy(Program, "import sys\nsys.argv = [");
  for (char** argument = arguments; *argument; argument++) {
    AppendQuoted(*argument);
    strcat(Program, ", ");
  }
  strcat(Program,
         "]\n"
         "exec(compile(open(sys.argv[0], encoding='utf-8')"
         ".read(), sys.argv[0], 'exec'))\n");
}

static void* RunThread(void* status) {
  PyGILState_Ensure();
  *(int*)status = PyRun_SimpleStringFlags(Program, NULL);
  return NULL;
}

static int RunInThread(void) {
  pthread_t thread;
  int status = 1;

  PyEval_SaveThread();
  if (pthread_create(&thread, NULL, RunThread, &status)) return 1;
  pthread_join(thread, NULL);
  return status != 0;
}

int main(int argc, char** argv) {
  int status;

  if (argc < 3) {
    fprintf(stderr, "usage: embed main|thread|interpreter FILE\n");
    return 2;
  }
  if (!strcmp(argv[1], "main")) {
    argv[1] = argv[0];
    return Py_BytesMain(argc - 1, argv + 1);
  }
  MakeProgram(argv + 2);
  Py_Initialize();
  if (!strcmp(argv[1], "thread")) {
    status = RunInThread();
  } else {
    if (!Py_NewInterpreter()) return 1;
    status = PyRun_SimpleStringFlags(Program, NULL) != 0;
  }
  fflush(stdout);
  _Exit(status); /* nothing is to be taken down */
}
