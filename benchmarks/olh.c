/* OLH support counting by hand: one thread, AVX2 intrinsics, 32 hashes a step.

   A report (seed, bucket) supports value v when its hash of v lies in the bucket's interval of hashes:
   hash - low < width, in 32-bit arithmetic. Both sides are moved by 2^31 once a report, because AVX2 compares
   signed integers only. The hash is the one of hubbub.core.hashing. */

#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define SIGN 0x80000000u
#define BLOCK 2048 /* reports: their four columns fill a 32 KiB L1 cache */

typedef struct {
    uint32_t low_seed[BLOCK], high_seed[BLOCK], low[BLOCK];
    int32_t width[BLOCK];
} Block;

static int64_t hits_plain(const Block *b, int64_t from, int64_t to, uint32_t first, uint32_t second) {
    uint32_t hits = 0;
    for (int64_t j = from; j < to; j++) {
        uint32_t x = (b->low_seed[j] + first) * (b->high_seed[j] + second);
        hits += (int32_t)(x - b->low[j]) < b->width[j];
    }
    return hits;
}

#ifdef __AVX2__
#define LOAD(column, k) _mm256_load_si256((const __m256i *)((column) + j) + (k))
#define EACH_OF_FOUR _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)

static int64_t hits(const Block *b, int64_t n, uint32_t first, uint32_t second) {
    const __m256i firsts = _mm256_set1_epi32((int)first), seconds = _mm256_set1_epi32((int)second);
    __m256i x[4], y[4], sum[4];
    EACH_OF_FOUR sum[k] = _mm256_setzero_si256();
    int64_t j = 0;
    for (; j + 32 <= n; j += 32) { /* stage by stage, so that one vector's multiplication hides the others' */
        EACH_OF_FOUR x[k] = _mm256_add_epi32(LOAD(b->low_seed, k), firsts);
        EACH_OF_FOUR y[k] = _mm256_add_epi32(LOAD(b->high_seed, k), seconds);
        EACH_OF_FOUR x[k] = _mm256_sub_epi32(_mm256_mullo_epi32(x[k], y[k]), LOAD(b->low, k));
        EACH_OF_FOUR sum[k] = _mm256_sub_epi32(sum[k], _mm256_cmpgt_epi32(LOAD(b->width, k), x[k]));
    }
    uint32_t lanes[32];
    EACH_OF_FOUR _mm256_storeu_si256((__m256i *)lanes + k, sum[k]);
    int64_t total = hits_plain(b, j, n, first, second);
    for (int lane = 0; lane < 32; lane++) total += lanes[lane];
    return total;
}
#else
static int64_t hits(const Block *b, int64_t n, uint32_t first, uint32_t second) {
    return hits_plain(b, 0, n, first, second);
}
#endif

/* Add to counts[v], for each v below d, the number of the n reports that support v, whose words are firsts[v] and
   seconds[v]. Bucket y holds the hashes from edges[y] up to edges[y + 1]. */
void olh_support(const uint64_t *seeds, const uint8_t *buckets, int64_t n, const uint64_t *edges, int64_t d,
                 const uint32_t *firsts, const uint32_t *seconds, int64_t *counts) {
    _Alignas(64) Block block;
    for (int64_t start = 0; start < n; start += BLOCK) {
        int64_t size = n - start < BLOCK ? n - start : BLOCK;
        for (int64_t j = 0; j < size; j++) {
            uint64_t seed = seeds[start + j];
            const uint64_t *edge = edges + buckets[start + j];
            block.low_seed[j] = (uint32_t)seed;
            block.high_seed[j] = (uint32_t)(seed >> 32);
            block.low[j] = (uint32_t)edge[0] + SIGN;
            block.width[j] = (int32_t)((uint32_t)(edge[1] - edge[0]) - SIGN);
        }
        for (int64_t v = 0; v < d; v++) counts[v] += hits(&block, size, firsts[v], seconds[v]);
    }
}

/* Whether the intrinsics are in use and this processor knows them. */
int olh_avx2(void) {
#ifdef __AVX2__
    return __builtin_cpu_supports("avx2") != 0;
#else
    return 0;
#endif
}
