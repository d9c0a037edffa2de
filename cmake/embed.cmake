# Writes C++ that holds files: `cmake -DOUT=F.cpp -DHEADER=H.hpp -DSPACE=N -DFILES=NAME=FILE;NAME=FILE -P embed.cmake`
# defines a function NAME for each in the namespace N; H.hpp declares them.
set(text "#include \"${HEADER}\"\n\nnamespace ${SPACE} {\n")
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^([a-z_]+)=(.*)$" matched "${entry}")
  set(name "${CMAKE_MATCH_1}")
  file(READ "${CMAKE_MATCH_2}" bytes HEX)
  string(REGEX REPLACE "(................................................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  # A byte more, so that an empty file is an array too.
  string(APPEND text "\nstatic const unsigned char ${name}_bytes[] = {\n${bytes}0};\n"
    "std::string_view ${name}() {\n"
    "  return {reinterpret_cast<const char*>(${name}_bytes), sizeof ${name}_bytes - 1};\n}\n")
endforeach()
string(APPEND text "\n}  // namespace ${SPACE}\n")
file(WRITE "${OUT}" "${text}")
