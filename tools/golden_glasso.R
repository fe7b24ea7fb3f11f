# Golden values from R's glasso, an independent implementation: Rscript tools/golden_glasso.R > tests/precision/golden.txt
# Blocks of: name, N, penalty, penalise the diagonal (1/0), known zeros as i,j pairs (1-based), S row by row, theta row by row.
suppressMessages(library(glasso))
set.seed(1)
emit <- function(name, S, rho, diagonal, zero = NULL) {
  fit <- if (is.null(zero)) glasso(S, rho, thr = 1e-13, maxit = 1e6, penalize.diagonal = diagonal)
         else glasso(S, rho, thr = 1e-13, maxit = 1e6, penalize.diagonal = diagonal, zero = zero)
  cat(name, nrow(S), format(rho, digits = 17), as.integer(diagonal), "\n")
  cat(if (is.null(zero)) "" else as.vector(t(zero)), "\n")
  cat(format(as.vector(S), digits = 17), "\n")
  cat(format(as.vector((fit$wi + t(fit$wi)) / 2), digits = 17), "\n")
}
draw <- function(rows, n) { X <- matrix(rnorm(rows * n), rows) %*% matrix(rnorm(n * n), n); crossprod(scale(X)) / (rows - 1) }
regular <- draw(40, 6)
emit("regular", regular, 0.1, FALSE)
emit("diagonal", regular, 0.1, TRUE)
emit("few_rows", draw(5, 8), 0.2, FALSE)
emit("unscaled", draw(30, 5) * outer(c(1, 2, 5, 10, 20), c(1, 2, 5, 10, 20)), 3.0, FALSE)
emit("known_zeros", regular, 0.05, FALSE, rbind(c(1, 2), c(3, 5)))
