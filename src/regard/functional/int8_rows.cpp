// out = (x · wᵀ) · scale for a few rows of x: w (m, n) is read once, as 8-bit integers, by all threads.
#include <algorithm>
#include <cstdint>

static constexpr int64_t BLOCK = 1024;  // columns that are converted at a time: they stay in the first-level cache

static float product(const float* x, const float* w, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; j++) sum += x[j] * w[j];
  return sum;
}

static float product(const float* x, const int8_t* w, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; j++) sum += x[j] * static_cast<float>(w[j]);
  return sum;
}

extern "C" void int8_rows(const float* x, const int8_t* w, const float* scale, float* out, int64_t rows, int64_t m,
                          int64_t n, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t i = 0; i < m; i++) {
    const int8_t* numbers = w + i * n;
    if (rows == 1) {
      out[i] = product(x, numbers, n) * scale[i];
      continue;
    }
    for (int64_t r = 0; r < rows; r++) out[r * m + i] = 0;
    for (int64_t start = 0; start < n; start += BLOCK) {
      const int64_t width = std::min(BLOCK, n - start);
      float converted[BLOCK];
#pragma omp simd
      for (int64_t j = 0; j < width; j++) converted[j] = static_cast<float>(numbers[start + j]);
      for (int64_t r = 0; r < rows; r++) out[r * m + i] += product(x + r * n + start, converted, width);
    }
    for (int64_t r = 0; r < rows; r++) out[r * m + i] *= scale[i];
  }
}
