# CPack runs this on the tree that it makes a Debian package of: names that Debian's policy has and other systems don't.
set(share "${CPACK_TEMPORARY_DIRECTORY}/program/usr/share")
file(RENAME "${share}/zsh/site-functions" "${share}/zsh/vendor-completions")
file(RENAME "${share}/doc/slidestream/LICENSE" "${share}/doc/slidestream/copyright")
file(CREATE_LINK copyright "${share}/doc/slidestream/LICENSE" SYMBOLIC)
