// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace profd {

// A directory of this user's, removed in the end, in which a test puts what
// kubelet and container engines would.
class StateDirectory {
 public:
  StateDirectory() {
    std::string path = testing::TempDir() + "labels.XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~StateDirectory() { std::filesystem::remove_all(path_); }
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;

  const std::string& path() const { return path_; }

  void MakeDirectory(const std::string& path) const {
    std::filesystem::create_directories(path_ + "/" + path);
  }
  void MakeLink(const std::string& target, const std::string& path) const {
    MakeDirectory(std::filesystem::path(path).parent_path());
    std::filesystem::create_symlink(target, path_ + "/" + path);
  }
  // Replaced as engines do it: by another file.
  void Write(const std::string& path, const std::string& text) const {
    MakeDirectory(std::filesystem::path(path).parent_path());
    const std::string whole = path_ + "/" + path;
    std::ofstream(whole + ".new") << text;
    std::filesystem::rename(whole + ".new", whole);
  }
  void Remove(const std::string& path) const {
    std::filesystem::remove_all(path_ + "/" + path);
  }
  void LetAllWrite(const std::string& path) const {
    ASSERT_EQ(::chmod((path_ + "/" + path).c_str(), 0777), 0);
  }

  // As kubelet does it for a container of a pod.
  void MakePod(const std::string& name_space, const std::string& pod,
               const std::string& uid) const {
    MakeDirectory("pods/" + name_space + "_" + pod + "_" + uid);
  }
  void MakeContainer(const std::string& name_space, const std::string& pod,
                     const std::string& uid, const std::string& container,
                     const std::string& id) const {
    const std::string directory =
        name_space + "_" + pod + "_" + uid + "/" + container;
    MakeDirectory("pods/" + directory);
    MakeLink("/var/log/pods/" + directory + "/0.log",
             "containers/" + pod + "_" + name_space + "_" + container + "-" +
                 id + ".log");
  }

 private:
  std::string path_;
};

}  // namespace profd
