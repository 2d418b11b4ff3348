// Which large numbers trees exchange for each other, and smaller ones that may stand for them.
//
// A relation is a row of whole numbers d: some tree has d(k) more edges of kind k than another, and both weigh about the same.
// Edges of kind k are about size(k) large, so the sum of d(k) size(k) is small; these sizes are made such that it is 0 for all
// relations, exactly, and then divided by a power of two, which it stays 0 by:
//
//     kinds 1e9, 1e9 + 0.2, 3e9      relations (1, -1, 0), (3, 0, -1)      sizes 1e9, 1e9, 3e9; 1000, 1000, 3000
//
// Relations that follow from others add nothing: there are at most as many as kinds, in echelon form.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <utility>
#include <vector>

#include "../number/wide.hpp"

namespace spantree {

class Exchanges {
public:
    explicit Exchanges(std::size_t kinds) : kinds_(kinds) {}

    std::size_t kinds() const { return kinds_; }

    /// Whether there are sizes: coefficients stayed small, and some size is not 0 for certain.
    bool useful() const { return small_ && rows_.size() < kinds_; }

    void add(std::vector<std::int64_t> row) {
        for (const Row& known : rows_) eliminate(row, known);
        std::size_t pivot = kinds_;
        for (std::size_t k = 0; k < kinds_; ++k)
            if (row[k] != 0 && (pivot == kinds_ || std::abs(row[k]) < std::abs(row[pivot]))) pivot = k;
        if (pivot == kinds_ || !small_) return;
        const Row added{std::move(row), pivot};
        for (Row& known : rows_) eliminate(known.of, added);
        rows_.push_back(added);
        multiple_ = 1;
        for (const Row& known : rows_) {
            multiple_ = std::lcm(multiple_, known.of[known.pivot]);
            small_ = small_ && multiple_ < largest;
        }
    }

    /// Sizes near the ones given, all relations' sums being 0.
    template <class Exact>
    class Sizes {
    public:
        Sizes(const Exchanges& exchanges, const std::vector<Exact>& given) : exchanges_(exchanges), free_(given) {
            for (Exact& size : free_) size = quotient(size, exchanges.multiple_);
        }

        /// Divided by 2^halvings.
        std::vector<Exact> divided(int halvings) const {
            std::vector<Exact> parts = free_;
            for (Exact& part : parts)
                for (int left = halvings; left > 0; left -= 63) part = part >> std::min(left, 63);
            std::vector<Exact> sizes(parts.size());
            const std::int64_t multiple = exchanges_.multiple_;
            for (std::size_t k = 0; k < parts.size(); ++k) sizes[k] = parts[k] * multiple;
            for (const Row& row : exchanges_.rows_) {
                Exact sum;
                for (std::size_t k = 0; k < parts.size(); ++k)
                    if (k != row.pivot && row.of[k] != 0)
                        sum = sum - parts[k] * (row.of[k] * (multiple / row.of[row.pivot]));
                sizes[row.pivot] = sum;
            }
            return sizes;
        }

    private:
        /// Of those that no relation determines what is lost does not matter. Some 50 bits at a time.
        static Exact quotient(Exact x, std::int64_t divisor) {
            if (divisor == 1) return x;
            constexpr int bits = 64 * static_cast<int>(sizeof(x.limb) / sizeof(x.limb[0]));
            constexpr int unit = std::min(1000 - bits, 0);  // as doubles, numbers are at most 2^1000
            Exact result;
            for (int done = 0; done < bits; done += 50) {
                const Exact part = Exact::of(x.value(unit) / static_cast<double>(divisor), unit);
                result = result + part;
                x = x - part * divisor;
            }
            return result;
        }

        const Exchanges& exchanges_;
        std::vector<Exact> free_;  // sizes over the rows' common multiple
    };

private:
    struct Row {
        std::vector<std::int64_t> of;
        std::size_t pivot;  // no other row has this kind
    };
    static constexpr std::int64_t largest = std::int64_t{1} << 30;

    /// Takes the pivot's kind out of a row.
    void eliminate(std::vector<std::int64_t>& row, const Row& by) {
        const std::int64_t a = by.of[by.pivot], b = row[by.pivot];
        if (b == 0 || !small_) return;
        std::int64_t common = 0;
        for (std::size_t k = 0; k < kinds_; ++k) {
            row[k] = row[k] * a - by.of[k] * b;
            common = std::gcd(common, row[k]);
        }
        for (std::int64_t& x : row) {
            if (common > 1) x /= common;
            small_ = small_ && std::abs(x) < largest;
        }
    }

    std::size_t kinds_;
    std::vector<Row> rows_;
    std::int64_t multiple_ = 1;  // of the rows' entries in their own kinds
    bool small_ = true;
};

}  // namespace spantree
