# Stands in for the MLXConfig.cmake inside MLX's wheels: that of the CUDA wheel requires CUDA's toolkit with its compiler,
# and cuDNN's headers. mlx-c takes nothing of them, only MLX's own headers and libmlx.so. MLX_PREFIX is the wheel's `mlx`.
add_library(mlx SHARED IMPORTED)
set_target_properties(mlx PROPERTIES
  IMPORTED_LOCATION "${MLX_PREFIX}/lib/libmlx.so"
  INTERFACE_INCLUDE_DIRECTORIES "${MLX_PREFIX}/include")
