// Statistics of attention on a CPU, from q, k and the LSE, compiled at first use. A tile of scores is computed, becomes
// weights and is summed over bins of queries in registers: neither scores nor weights are written to memory.
#include <algorithm>
#include <cstdint>
#include <vector>

#ifdef __AVX512F__
static constexpr int LANES = 16, VECTORS = 4;
#else
static constexpr int LANES = 8, VECTORS = 2;
#endif
static constexpr int ROWS = 6;  // of a tile: 24 or 12 registers hold its sums
static constexpr int64_t WIDTH = LANES * VECTORS;
static constexpr int64_t BLOCK = 128;  // queries whose sums are in the cache, unless a bin is larger

typedef float Floats __attribute__((vector_size(LANES * 4), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

struct Shape {
  int64_t B, H, G, T, S, E;
  int64_t q_strides[3], k_strides[3];  // of B, H (G) and T (S)
  int64_t bin_height, bin_width, R, C; // of the map
  int64_t first, last;                 // query i sees the keys from i + first to i + last
  int64_t chunks, threads;
  double scale;
};

// exp(x), relative error below 2e-7, for x < 88; 0 below -87. Cephes' polynomial of degree 5.
static inline Floats exponential(Floats x) {
  const Ints is_zero = x < -87.0f;
  const Floats bounded = is_zero ? Floats{} - 87.0f : x;
  const Floats shifted = bounded * 1.44269504f + 12582912.0f;  // 1.5 · 2²³: the fraction is rounded away
  const Floats n = shifted - 12582912.0f;
  const Floats r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Ints power = ((Ints)shifted - 0x4B400000 + 127) << 23;
  return is_zero ? Floats{} : p * (Floats)power;
}

// The weights of up to ROWS queries and WIDTH keys, added to `sums` of the queries' bins. Row i sees the keys of the
// tile from first + i to last + i.
template <bool masked>
static void add_tile(const float* q, const float* panel, int64_t E, int rows, const float* lse, int64_t first,
                     int64_t last, const int32_t* bin, float* sums, int64_t stride) {
  Floats s[ROWS][VECTORS];
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < VECTORS; j++) s[i][j] = Floats{} - lse[i];
  for (int64_t e = 0; e < E; e++) {
    Floats k[VECTORS];
    for (int j = 0; j < VECTORS; j++) k[j] = *(const Floats*)(panel + e * WIDTH + j * LANES);
    for (int i = 0; i < ROWS; i++)
      for (int j = 0; j < VECTORS; j++) s[i][j] += q[i * E + e] * k[j];
  }
  for (int j = 0; j < VECTORS; j++) {
    Ints key;
    for (int lane = 0; lane < LANES; lane++) key[lane] = lane + j * LANES;
    Floats sum = {};
    for (int i = 0; i < rows; i++) {
      Floats weight = exponential(s[i][j]);
      if (masked) {
        const auto low = (int32_t)std::clamp<int64_t>(first + i, 0, WIDTH);
        const auto high = (int32_t)std::clamp<int64_t>(last + i, -1, WIDTH);
        weight = (key >= low) & (key <= high) ? weight : Floats{};
      }
      sum += weight;
      if (i + 1 == rows || bin[i + 1] != bin[i]) {
        *(Floats*)(sums + bin[i] * stride + j * LANES) += sum;
        sum = Floats{};
      }
    }
  }
}

// Sums over every `width` numbers of x, added to `out`.
template <int64_t width>
static void add_columns(const float* x, int64_t n, float* out) {
  const int64_t whole = n / width;
  for (int64_t c = 0; c < whole; c++) {
    float sum = 0;
    for (int64_t i = 0; i < width; i++) sum += x[c * width + i];
    out[c] += sum;
  }
  for (int64_t i = whole * width; i < n; i++) out[whole] += x[i];
}

static void add_columns(const float* x, int64_t n, int64_t width, float* out) {
  switch (width) {
    case 1: return add_columns<1>(x, n, out);
    case 2: return add_columns<2>(x, n, out);
    case 4: return add_columns<4>(x, n, out);
    case 8: return add_columns<8>(x, n, out);
  }
  for (int64_t begin = 0; begin < n; begin += width) {
    const int64_t end = std::min(n, begin + width);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; i++) sum += x[i];
    out[begin / width] += sum;
  }
}

struct Buffers {
  std::vector<float> panels, queries, lse, sums;
};

// Keys by WIDTH, each panel transposed: E WIDTH. The last is filled up with zeros.
static void pack_keys(const Shape& s, const float* k, float* panels) {
  for (int64_t begin = 0; begin < s.S; begin += WIDTH, panels += WIDTH * s.E)
    for (int64_t c = 0; c < WIDTH; c++)
      for (int64_t e = 0; e < s.E; e++) panels[e * WIDTH + c] = begin + c < s.S ? k[(begin + c) * s.k_strides[2] + e] : 0;
}

// Queries `begin` to `end` of one head: rows of the map, and their share of the sums over all queries.
static void add_block(const Shape& s, const float* q, const float* lse, int64_t begin, int64_t end, Buffers& buffers,
                      float* map, float* received, double* sink) {
  const int64_t stride = (s.S + WIDTH - 1) / WIDTH * WIDTH, n = end - begin, bins = (n - 1) / s.bin_height + 1;
  const int64_t from = std::clamp<int64_t>(begin + s.first, 0, s.S) / WIDTH;
  const int64_t to = std::clamp<int64_t>(end + s.last, 0, s.S);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t e = 0; e < s.E; e++) buffers.queries[i * s.E + e] = q[(begin + i) * s.q_strides[2] + e] * (float)s.scale;
    buffers.lse[i] = lse[begin + i];
  }
  std::fill(buffers.sums.begin(), buffers.sums.begin() + bins * stride, 0.0f);
  for (int64_t p = from; p * WIDTH < to; p++)
    for (int64_t i = 0; i < n; i += ROWS) {
      const int rows = (int)std::min<int64_t>(ROWS, n - i);
      const int64_t first = begin + i + s.first - p * WIDTH, last = begin + i + s.last - p * WIDTH;
      if (last + rows - 1 < 0 || first >= WIDTH) continue;
      int32_t bin[ROWS];
      for (int r = 0; r < ROWS; r++) bin[r] = (int32_t)((i + r) / s.bin_height);
      const bool whole = first + rows - 1 <= 0 && last >= WIDTH - 1 && (p + 1) * WIDTH <= s.S;
      // Keys beyond the last are zeros: their sums are computed and not read.
      (whole ? add_tile<false> : add_tile<true>)(&buffers.queries[i * s.E], &buffers.panels[p * WIDTH * s.E], s.E, rows,
                                                 &buffers.lse[i], first, last, bin, &buffers.sums[p * WIDTH], stride);
    }
  for (int64_t bin = 0; bin < bins; bin++) {
    const float* sums = &buffers.sums[bin * stride];
    if (map) add_columns(sums, to, s.bin_width, map + (begin / s.bin_height + bin) * s.C);
    if (received)
      for (int64_t c = 0; c < to; c++) received[c] += sums[c];
    *sink += sums[0];
  }
}

// map B H R C and received B H chunks S, zeros or null, and sink B H chunks; lse B H T.
extern "C" void sums_of_weights(const Shape* shape, const float* q, const float* k, const float* lse, float* map,
                                float* received, float* sink) {
  const Shape& s = *shape;
  const int64_t block = s.bin_height > BLOCK ? s.bin_height : BLOCK / s.bin_height * s.bin_height;
  const int64_t blocks = (s.T + block - 1) / block;
#pragma omp parallel num_threads((int)s.threads)
  {
    Buffers buffers;
    const int64_t stride = (s.S + WIDTH - 1) / WIDTH * WIDTH;
    buffers.panels.resize(stride * s.E);
    buffers.queries.resize((block + ROWS) * s.E);
    buffers.lse.resize(block + ROWS);
    buffers.sums.resize(block / s.bin_height * stride);
#pragma omp for schedule(dynamic)
    for (int64_t piece = 0; piece < s.B * s.H * s.chunks; piece++) {
      const int64_t head = piece / s.chunks, b = head / s.H, h = head % s.H;
      const float* keys = k + b * s.k_strides[0] + h / (s.H / s.G) * s.k_strides[1];
      const float* queries = q + b * s.q_strides[0] + h * s.q_strides[1];
      pack_keys(s, keys, buffers.panels.data());
      double first = 0;
      for (int64_t i = piece % s.chunks; i < blocks; i += s.chunks)  // in turn: of a causal mask, later ones take longer
        add_block(s, queries, lse + head * s.T, i * block, std::min(s.T, (i + 1) * block), buffers,
                  map ? map + head * s.R * s.C : nullptr, received ? received + piece * s.S : nullptr, &first);
      sink[piece] = (float)first;
    }
  }
}
