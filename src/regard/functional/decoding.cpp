// Decoding on a CPU, compiled at first use: products of a few rows with 8-bit weights, and one token of one text
// through all layers of a decoder. All threads read the weights once; what is small every thread computes for itself.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

static constexpr int64_t BLOCK = 1024;  // columns that are converted at a time: they stay in the first-level cache

struct Matrix {  // out = x wᵀ · scale + bias, w (m, n); float where there is no scale, else 8-bit integers
  const void* numbers;
  const float* scale;
  const float* bias;
};

struct Norm {  // absent where there is no weight
  const float* weight;
  const float* bias;
};

struct Layer {
  Norm attention_norm, attention_output_norm, query_norm, key_norm;
  Matrix query, key, value, attention_output;
  Norm feed_forward_norm, feed_forward_output_norm;
  Matrix gate, up, down;  // without a gate its numbers are null
  float *keys, *values;   // G S E, the cache; S is `capacity`
  const float *cosines, *sines;  // of the rotation, `rotated` numbers each
  int64_t window;         // the number of visible keys; 0 for all
  int64_t capacity;
};

enum Place { POST, PRE, PARALLEL, BOTH };
enum Activation { RELU, GELU, GELU_TANH, SILU };

struct Settings {
  int64_t layers, width, heads, groups, head, hidden;
  int64_t rotated, halves, rms, place, activation, position, threads;
  double eps, scale, softcap;  // no bound where softcap is 0
};

static float product(const float* x, const float* w, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; j++) sum += x[j] * w[j];
  return sum;
}

// Four rows of w at a time: four sums in progress hide the latency of an addition.
template <typename Number>
static void product_of_rows(const float* x, const Number* w, int64_t n, int64_t rows, float* out) {
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    const Number *a = w + i * n, *b = a + n, *c = b + n, *d = c + n;
    float p = 0, q = 0, r = 0, s = 0;
#pragma omp simd reduction(+ : p, q, r, s)
    for (int64_t j = 0; j < n; j++) {
      p += x[j] * static_cast<float>(a[j]);
      q += x[j] * static_cast<float>(b[j]);
      r += x[j] * static_cast<float>(c[j]);
      s += x[j] * static_cast<float>(d[j]);
    }
    out[i] = p, out[i + 1] = q, out[i + 2] = r, out[i + 3] = s;
  }
  for (; i < rows; i++) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; j++) sum += x[j] * static_cast<float>(w[i * n + j]);
    out[i] = sum;
  }
}

// Rows `begin` to `end` of out = x wᵀ.
static void multiply(const Matrix& matrix, const float* x, int64_t n, int64_t begin, int64_t end, float* out) {
  const int64_t rows = end - begin;
  if (matrix.scale == nullptr) {
    product_of_rows(x, static_cast<const float*>(matrix.numbers) + begin * n, n, rows, out + begin);
  } else {
    product_of_rows(x, static_cast<const int8_t*>(matrix.numbers) + begin * n, n, rows, out + begin);
    for (int64_t i = begin; i < end; i++) out[i] *= matrix.scale[i];
  }
  if (matrix.bias != nullptr)
    for (int64_t i = begin; i < end; i++) out[i] += matrix.bias[i];
}

static void normalise(const Norm& norm, const Settings& s, const float* x, int64_t n, float* out) {
  float mean = 0, squares = 0;
  if (!s.rms) {
    for (int64_t i = 0; i < n; i++) mean += x[i];
    mean /= n;
  }
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  const float factor = 1 / std::sqrt(squares / n + static_cast<float>(s.eps));
  for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * factor * norm.weight[i];
  if (norm.bias != nullptr)
    for (int64_t i = 0; i < n; i++) out[i] += norm.bias[i];
}

// The first row of a thread's share of m rows, in fours.
static int64_t first_row(int64_t m, int64_t thread, int64_t threads) {
  return thread == threads ? m : m * thread / threads / 4 * 4;
}

// One head of q or k: its norm, if there is one, and its rotation.
static void prepare(const Norm& norm, const Layer& layer, const Settings& s, float* x) {
  if (norm.weight != nullptr) normalise(norm, s, x, s.head, x);
  const int64_t pairs = s.rotated / 2, apart = s.halves ? pairs : 1, step = s.halves ? 1 : 2;
  for (int64_t i = 0; i < pairs; i++) {
    float &one = x[i * step], &other = x[i * step + apart];
    const float first = one, second = other;
    one = first * layer.cosines[i] - second * layer.sines[i];
    other = second * layer.cosines[i] + first * layer.sines[i];
  }
}

static float activate(float x, int64_t kind) {
  switch (kind) {
    case RELU: return x > 0 ? x : 0;
    case GELU: return 0.5f * x * (1 + std::erf(x * 0.70710678f));
    case GELU_TANH: return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    default: return x / (1 + std::exp(-x));
  }
}

// The output of one head for the newest query; `weights` holds a number for every key.
static void attend(const Layer& layer, const Settings& s, const float* query, int64_t head, float* weights, float* out) {
  const int64_t group = head / (s.heads / s.groups), last = s.position;
  const int64_t first = layer.window ? std::max<int64_t>(0, last + 1 - layer.window) : 0;
  const float *keys = layer.keys + group * layer.capacity * s.head, *values = layer.values + group * layer.capacity * s.head;
  const int64_t count = last + 1 - first;
  product_of_rows(query, keys + first * s.head, s.head, count, weights);
  float largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < count; i++) {
    float score = weights[i] * static_cast<float>(s.scale);
    if (s.softcap > 0) score = static_cast<float>(s.softcap) * std::tanh(score / static_cast<float>(s.softcap));
    weights[i] = score;
    largest = std::max(largest, score);
  }
  for (int64_t i = 0; i < count; i++) sum += weights[i] = std::exp(weights[i] - largest);
  std::fill(out, out + s.head, 0.0f);
  for (int64_t i = 0; i < count; i++) {
    const float weight = weights[i] / sum, *value = values + (first + i) * s.head;
    for (int64_t j = 0; j < s.head; j++) out[j] += weight * value[j];
  }
}

extern "C" void decoder_step(const Settings* settings, const Layer* layers, float* x) {
  const Settings s = *settings;
  const int64_t D = s.width, E = s.head, wide = s.heads * E, narrow = s.groups * E;
  std::vector<float> query(wide), key(narrow), value(narrow), heads(wide), added(D), hidden(s.hidden), gates(s.hidden);
#pragma omp parallel num_threads(static_cast<int>(s.threads))
  {
    const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    auto share = [&](const Matrix& matrix, const float* in, int64_t n, int64_t m, float* out) {
      multiply(matrix, in, n, first_row(m, thread, threads), first_row(m, thread + 1, threads), out);
    };
    std::vector<float> sum(x, x + D), block(D), normed(D), output(D), weights(s.position + 1);
    for (int64_t number = 0; number < s.layers; number++) {
      const Layer& layer = layers[number];
      auto read = [&](const Norm& norm, const std::vector<float>& from) {
        if (s.place == POST) return from.data();
        normalise(norm, s, from.data(), D, normed.data());
        return static_cast<const float*>(normed.data());
      };
      auto add = [&](const Norm& norm, const Norm& output_norm) {
        const float* part = added.data();
        if (s.place == BOTH) normalise(output_norm, s, part, D, output.data()), part = output.data();
        for (int64_t i = 0; i < D; i++) sum[i] += part[i];
        if (s.place == POST) normalise(norm, s, sum.data(), D, sum.data());
      };
      if (s.place == PARALLEL) block = sum;
      const float* in = read(layer.attention_norm, sum);
      share(layer.query, in, D, wide, query.data());
      share(layer.key, in, D, narrow, key.data());
      share(layer.value, in, D, narrow, value.data());
#pragma omp barrier
      for (int64_t head = thread; head < s.heads; head += threads) prepare(layer.query_norm, layer, s, &query[head * E]);
      for (int64_t group = thread; group < s.groups; group += threads) {
        prepare(layer.key_norm, layer, s, &key[group * E]);
        const int64_t place = (group * layer.capacity + s.position) * E;
        std::copy_n(&key[group * E], E, layer.keys + place);
        std::copy_n(&value[group * E], E, layer.values + place);
      }
#pragma omp barrier
      for (int64_t head = thread; head < s.heads; head += threads)
        attend(layer, s, &query[head * E], head, weights.data(), &heads[head * E]);
#pragma omp barrier
      share(layer.attention_output, heads.data(), wide, D, added.data());
#pragma omp barrier
      add(layer.attention_norm, layer.attention_output_norm);
      in = read(layer.feed_forward_norm, s.place == PARALLEL ? block : sum);
      // A thread computes the same rows of `gate` and `up`, so that no other waits for them.
      const int64_t begin = first_row(s.hidden, thread, threads), end = first_row(s.hidden, thread + 1, threads);
      multiply(layer.up, in, D, begin, end, hidden.data());
      if (layer.gate.numbers == nullptr) {
        for (int64_t i = begin; i < end; i++) hidden[i] = activate(hidden[i], s.activation);
      } else {
        multiply(layer.gate, in, D, begin, end, gates.data());
        for (int64_t i = begin; i < end; i++) hidden[i] *= activate(gates[i], s.activation);
      }
#pragma omp barrier
      share(layer.down, hidden.data(), s.hidden, D, added.data());
#pragma omp barrier
      add(layer.feed_forward_norm, layer.feed_forward_output_norm);
    }
    if (thread == 0) std::copy(sum.begin(), sum.end(), x);
  }
}

// out = (x · wᵀ) · scale for a few rows of x: w (m, n) is read once, as 8-bit integers, by all threads.
extern "C" void int8_rows(const float* x, const int8_t* w, const float* scale, float* out, int64_t rows, int64_t m,
                          int64_t n, int threads) {
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const int64_t thread = omp_get_thread_num(), count = omp_get_num_threads();
    const int64_t begin = first_row(m, thread, count), end = first_row(m, thread + 1, count);
    if (rows == 1) multiply({w, scale, nullptr}, x, n, begin, end, out);
    for (int64_t i = begin; rows > 1 && i < end; i++) {
      const int8_t* numbers = w + i * n;
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
}
