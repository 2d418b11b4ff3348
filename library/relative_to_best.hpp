// Scores of one distribution, q, in numbers that are right for the trees of another, p, however large the scores.
//
// Let b be a best tree of p. Then log q(tree) = log q(b) + the sum of D over the tree's edges,
//
//     D(h, d)  =  q(h, d) - q(head of d in b, d),
//
// each rounded once: masks that b has in the same words are gone, and with one root those of root edges
// (likeliest_edges.hpp). Others stay, and masks that trees of p must pay now here, now there, would have to cancel. So, for the
// sets S of words that p's trees enter just once (batch/certificate.hpp, of q's scores where p has edges), y(S) is taken off the
// masks of all edges that enter S. What else is large may be so as many times in every tree of p, for reasons such as that its
// edges do not cross, or that it has one root though it might have several: where the variance of that number is 0, it is taken
// off too, however few trees have any of it: what a rare tree is ahead by one edge and behind by another would drown all else.
// What stays large is so for trees that do have more masks than others.
//
//     three words, one root      masks of q             D but for scores      b = {ROOT -> 3, 3 -> 1, 3 -> 2}
//     ROOT -> 1, 2, 3            -1e30, 0, -1e30        0,     1e30, 0
//     2 -> 1, 3 -> 1             -1e30, 0               -1e30, 0              {ROOT -> 2, 2 -> 1, 2 -> 3} has both
#pragma once

#include <span>
#include <vector>

#include "questions.hpp"

namespace spantree::library {

/// For sentences `which`: writes D to to[i], -inf where q has no edge, and to of_best[i] what log q(tree) is besides their sum:
/// log q(b), and what was taken off for sets. Where q(b) is 0, that is -inf, and nothing else is written. `marginals` and
/// `relative_scores` are those of p.
void write_relative_to_best(const EdgeValues& marginals, const EdgeValues& relative_scores, const Batch& q,
                            const Options& options, std::span<const std::size_t> which,
                            const std::vector<EdgeTarget<double>>& to, double* of_best);

}  // namespace spantree::library
