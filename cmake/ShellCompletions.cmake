# SPDX-License-Identifier: Apache-2.0
# ksym_completions(TARGET): the program's completion scripts, made by itself
# when it has been linked, and installed where shells look for them.
function(ksym_completions target)
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/completions")
  file(MAKE_DIRECTORY "${directory}")
  set(bash "${directory}/${target}")
  set(zsh "${directory}/_${target}")
  set(fish "${directory}/${target}.fish")
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND "$<TARGET_FILE:${target}>" --completion bash > "${bash}"
    COMMAND "$<TARGET_FILE:${target}>" --completion zsh > "${zsh}"
    COMMAND "$<TARGET_FILE:${target}>" --completion fish > "${fish}"
    BYPRODUCTS "${bash}" "${zsh}" "${fish}" VERBATIM)
  install(FILES "${bash}"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${zsh}"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${fish}"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endfunction()
