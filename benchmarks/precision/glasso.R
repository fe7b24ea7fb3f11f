# One covariance, one penalty or a path of them, each started at its neighbour; the clock runs around glasso() only.
# Rscript glasso.R FOLDER N THR: reads emp_cov.bin and penalties.bin there, writes precisions.bin, prints the seconds.
suppressMessages(library(glasso))
arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
n <- as.integer(arguments[2])
thr <- as.numeric(arguments[3])

penalties <- readBin(file.path(folder, "penalties.bin"), "double", 1e6)
s <- matrix(readBin(file.path(folder, "emp_cov.bin"), "double", n * n), n)
out <- file(file.path(folder, "precisions.bin"), "wb")
seconds <- 0
for (k in seq_along(penalties)) {
  started <- as.numeric(Sys.time())
  if (k == 1) {
    fit <- glasso(s, penalties[k], thr = thr, penalize.diagonal = FALSE)
  } else {
    fit <- glasso(s, penalties[k], thr = thr, penalize.diagonal = FALSE, start = "warm", w.init = fit$w, wi.init = fit$wi)
  }
  seconds <- seconds + as.numeric(Sys.time()) - started
  writeBin(as.vector(fit$wi), out)
}
close(out)
cat(format(seconds, digits = 15), "\n")
