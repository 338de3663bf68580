// SPDX-License-Identifier: Apache-2.0
// A plugin for clang-tidy 19: checks are matched against the project's own
// declarations and not against those of system headers, whose findings nobody
// sees. That is two thirds of clang-tidy's time. What clang itself warns of is
// as ever, and so are checks of macros and includes.
//
// scripts/lint loads it; tests/lint/planted.py holds its findings to be those
// without it. clang-tidy 22 does this by itself.
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/FrontendPluginRegistry.h>

#include <memory>
#include <string>
#include <vector>

namespace {

bool IsOwn(const clang::Decl& declaration,
           const clang::SourceManager& sources) {
  const clang::SourceLocation place = declaration.getLocation();
  // What the compiler declares itself has no place.
  return place.isInvalid() ||
         !sources.isInSystemHeader(sources.getExpansionLoc(place));
}

class OwnCodeConsumer : public clang::ASTConsumer {
 public:
  void HandleTranslationUnit(clang::ASTContext& context) override {
    std::vector<clang::Decl*> own;
    for (clang::Decl* declaration : context.getTranslationUnitDecl()->decls()) {
      if (IsOwn(*declaration, context.getSourceManager())) {
        own.push_back(declaration);
      }
    }
    context.setTraversalScope(own);
  }
};

class OwnCodeAction : public clang::PluginASTAction {
 public:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(
      clang::CompilerInstance& /*compiler*/,
      llvm::StringRef /*file*/) override {
    return std::make_unique<OwnCodeConsumer>();
  }

  bool ParseArgs(const clang::CompilerInstance& /*compiler*/,
                 const std::vector<std::string>& /*arguments*/) override {
    return true;
  }

  // clang-tidy itself comes after it.
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<OwnCodeAction> kOwnCode(
    "own-code", "match the project's own declarations only");

}  // namespace
