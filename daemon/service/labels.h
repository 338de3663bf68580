// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "daemon/labels/label_thread.h"
#include "daemon/output/format.h"
#include "daemon/output/options.h"
#include "daemon/service/config.h"

namespace profd {

// What profiles say of each sample.
struct Labels {
  SampleLabels of_sample;
  bool tid = false;  // has to be captured

  // `words`: as in the configuration.
  static Labels Of(std::span<const std::string> words);
};

// What else is to be found of processes.
LabelThread::Settings LabelSettings(const ServiceConfig& config);

// How a profile is written with these labels. Folded stacks and pictures have
// none: their samples are grouped by command.
OutputOptions OptionsFor(OutputFormat format, const Labels& labels);

}  // namespace profd
