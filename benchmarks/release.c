/* What a curator publishes of clipped values, in plain C: the loop of kernels/published.py with the Recent smoother. */
#include <stdint.h>

void publish(const double *values, int64_t n, double theta, int64_t cells, int64_t fine, const int64_t *noise,
             int64_t block, double prediction, double *out) {
    const double to_cells = cells / theta, to_value = theta / cells / fine;
    int64_t leaf = 0;
    for (int64_t start = 0; start + block <= n; start += block) {
        int64_t sum = 0;
        for (int64_t i = start; i < start + block; i++) {
            double value = values[i] < theta ? values[i] : theta;
            sum += (int64_t)(value * to_cells + 0.5);
            out[i] = prediction;
        }
        double total = (sum * fine + noise[leaf++]) * to_value;
        out[start + block - 1] = total - prediction * (block - 1);
        prediction = total / block;
    }
}
