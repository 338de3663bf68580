// SPDX-License-Identifier: Apache-2.0
// A plugin for clang-tidy 19: checks are matched against the project's own
// declarations and not against those of system headers, whose findings nobody
// sees. That is two thirds of clang-tidy's time; clang-tidy 22 does this by
// itself. Clang's own warnings are as ever, and so are checks of macros and
// includes.
//
// scripts/lint has sources that are compiled together. Clang takes those for
// headers, where a constant or an inline function may stay unused, so the
// plugin warns of these as clang does where a source is compiled alone.
//
// scripts/lint loads it; tests/lint/planted.py holds its findings to be those
// of each source alone and without it.
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/DiagnosticSema.h>
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

// Warns of unused names of unnamed namespaces and of static ones.
class UnusedNames : public clang::RecursiveASTVisitor<UnusedNames> {
 public:
  explicit UnusedNames(clang::ASTContext& context) : context_(context) {}

  // Without initializers that run when the program starts: they may be why the
  // variable is there.
  bool VisitVarDecl(clang::VarDecl* variable) {
    if (variable->isFileVarDecl() && variable->hasInit() &&
        variable->hasConstantInitialization() &&
        variable->needsDestruction(context_) == clang::QualType::DK_none) {
      WarnIfUnused(*variable, variable->getType().isConstQualified()
                                  ? clang::diag::warn_unused_const_variable
                                  : clang::diag::warn_unused_variable);
    }
    return true;
  }

  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (function->isInlined() && function->isThisDeclarationADefinition() &&
        !llvm::isa<clang::CXXMethodDecl>(function) &&
        !function->isTemplated() && !function->isTemplateInstantiation()) {
      WarnIfUnused(*function, clang::diag::warn_unused_function);
    }
    return true;
  }

 private:
  void WarnIfUnused(const clang::NamedDecl& name, unsigned warning) {
    const clang::SourceManager& sources = context_.getSourceManager();
    const clang::SourceLocation place = name.getLocation();
    if (name.isReferenced() || name.isUsed() || name.isExternallyVisible() ||
        name.hasAttr<clang::UnusedAttr>() || place.isMacroID() ||
        sources.isInMainFile(place) ||
        !sources.getFilename(place).ends_with(".cc")) {
      return;
    }
    context_.getDiagnostics().Report(place, warning) << &name;
  }

  clang::ASTContext& context_;
};

class OwnCodeConsumer : public clang::ASTConsumer {
 public:
  void HandleTranslationUnit(clang::ASTContext& context) override {
    std::vector<clang::Decl*> own;
    for (clang::Decl* declaration : context.getTranslationUnitDecl()->decls()) {
      if (IsOwn(*declaration, context.getSourceManager())) {
        own.push_back(declaration);
      }
    }
    UnusedNames unused(context);
    for (clang::Decl* declaration : own) unused.TraverseDecl(declaration);
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
