// Names addresses; see ksym-symbolize(1).

#include "daemon/symbolize/name_profile.h"
#include "ksym/tools/symbolize_program.h"

int main(int argc, char** argv) {
  return ksym::RunSymbolizeProgram(argc, argv, profd::NameRawProfile);
}
