# Makes the networks that tests run, and a link to what runs them: PYTHON SCRIPT OUT. Where the packages for it are missing
# nothing is made, and the tests skip themselves.
file(REMOVE_RECURSE "${OUT}")
execute_process(COMMAND "${PYTHON}" -c
    "import importlib.util as u, pathlib as p, onnx, h5py, PIL; print(next((p.Path(u.find_spec('onnxruntime').origin).parent / 'capi').glob('libonnxruntime.so*')))"
  OUTPUT_VARIABLE library OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message("SKIPPED: ${PYTHON} has no packages onnx, onnxruntime, h5py and pillow: scripts/install-deps.sh --tests installs them")
  return()
endif()
execute_process(COMMAND "${PYTHON}" -B "${SCRIPT}" "${OUT}" COMMAND_ERROR_IS_FATAL ANY)
file(CREATE_LINK "${library}" "${OUT}/libonnxruntime.so" SYMBOLIC)
