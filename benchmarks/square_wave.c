/* Expectation maximisation for a band of likely cells, in plain C: what kernels/square_wave.py computes. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void expectation_maximisation(const double *given, int64_t cells, int64_t points, int64_t band, double near,
                              double far, double smoothing, double tolerance, int64_t most, double *shares) {
    double *below = calloc(points + 1, sizeof(double)), *pull = calloc(cells + 1, sizeof(double));
    double *moved = calloc(points, sizeof(double)), before = -INFINITY, gain = near - far;
    for (int64_t step = 0; step < most; step++) {
        for (int64_t x = 0; x < points; x++) below[x + 1] = below[x] + shares[x];
        double likelihood = 0;
        for (int64_t y = 0; y < cells; y++) {
            int64_t end = y + 1 < points ? y + 1 : points, start = y - band + 1 > 0 ? y - band + 1 : 0;
            double mixed = far * below[points] + gain * (below[end] - below[start]);
            pull[y + 1] = pull[y] + given[y] / mixed;
            if (step % 16 == 0 && given[y] > 0) likelihood += given[y] * log(mixed);
        }
        if (step % 16 == 0) {
            if (fabs(likelihood - before) < tolerance * 16) break;
            before = likelihood;
        }
        for (int64_t x = 0; x < points; x++)
            moved[x] = shares[x] * (far * pull[cells] + gain * (pull[x + band] - pull[x]));
        for (int64_t x = 0; x < points; x++) {
            double left = moved[x > 0 ? x - 1 : 0], right = moved[x + 1 < points ? x + 1 : points - 1];
            shares[x] = moved[x] + smoothing * (left + right - 2 * moved[x]);
        }
    }
    free(below);
    free(pull);
    free(moved);
}
