/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Only to be compiled: templates that lead a compiler deep into itself. */
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

template <int N> struct tower : tower<N - 1> {
        std::tuple<std::array<int, N>, std::variant<int, std::array<char, N>>> floor;

        int height() const {
                return tower<N - 1>::height() + (int) std::get<0>(floor).size();
        }
};
template <> struct tower<0> {
        int height() const {
                return 0;
        }
};

template <int... Is> int sum_of(std::integer_sequence<int, Is...>) {
        return (... + std::get<0>(tower<Is + 1>().floor)[0]);
}

template <int N> auto compose() {
        if constexpr (N == 0)
                return [](int x) { return x; };
        else
                return [inner = compose<N - 1>()](int x) { return inner(x) + N; };
}

int everything(const std::string &text) {
        std::map<std::string, std::vector<std::function<int(int)>>> functions;
        std::vector<std::unique_ptr<tower<12>>> towers;
        int total = compose<6>()(sum_of(std::make_integer_sequence<int, 12>()));

        for (char c : text)
                functions[std::string(1, c)].push_back(compose<5>());
        for (const auto &[name, list] : functions)
                total += std::accumulate(list.begin(), list.end(), 0,
                                         [](int sum, const auto &f) { return f(sum); });
        for (int i = 0; i < 10; i++)
                towers.push_back(std::make_unique<tower<12>>());
        std::sort(towers.begin(), towers.end(),
                  [](const auto &a, const auto &b) { return a->height() < b->height(); });
        return total + (int) towers.size();
}
