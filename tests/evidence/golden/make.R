# Golden values for tests/evidence/test_edges_golden.py, from R's corpcor and qgraph.
#
#   Rscript tests/evidence/golden/make.R     (Debian: r-cran-corpcor, r-cran-qgraph), from the root of a clone
#
# Rows are whole numbers by a formula, so that no file of rows and no random numbers are needed.
suppressMessages({library(corpcor); library(qgraph)})

n_rows <- 60; n_columns <- 6
rows <- outer(1:n_rows, 1:n_columns, function(t, i) (t * (7 * i + 3) + t^2 * i + (t * i) %% 11) %% (17 + 6 * i))
rows[, 2] <- rows[, 2] + rows[, 1]
rows[, 4] <- rows[, 4] - rows[, 3]
partial <- cor2pcor(cor(rows))
r2 <- sapply(1:n_columns, function(i) summary(lm(rows[, i] ~ rows[, -i]))$adj.r.squared)
p <- matrix(0, n_columns, n_columns)
for (i in 1:n_columns) for (j in setdiff(1:n_columns, i)) {
  others <- setdiff(1:n_columns, i)
  p[i, j] <- summary(lm(rows[, i] ~ rows[, others]))$coefficients[1 + which(others == j), 4]
}

weights <- matrix(0, 6, 6)  # a signed graph in one part
edges <- rbind(c(1, 2, 0.5), c(1, 3, -0.25), c(2, 3, 0.3), c(3, 4, 0.4), c(4, 5, -0.6), c(5, 6, 0.2), c(4, 6, 0.15))
for (e in seq_len(nrow(edges))) {
  weights[edges[e, 1], edges[e, 2]] <- edges[e, 3]; weights[edges[e, 2], edges[e, 1]] <- edges[e, 3]
}
central <- centrality(weights)
strength <- colSums(abs(weights))
stopifnot(all.equal(unname(central$OutDegree), strength))

out <- file("tests/evidence/golden/values.txt", "w")
show <- function(name, values) writeLines(paste(name, paste(formatC(values, digits = 15, format = "g"), collapse = " ")), out)
writeLines(paste("# corpcor", packageVersion("corpcor"), "qgraph", packageVersion("qgraph"), R.version.string), out)
show("partial_correlation", partial[lower.tri(partial)])  # column by column of the lower triangle
show("p_value", p[lower.tri(p)])
show("adjusted_r2", r2)
show("strength", central$OutDegree)
show("expected_influence", central$OutExpectedInfluence)
show("closeness", central$Closeness)
show("betweenness", central$Betweenness)
close(out)
