/** Kinds of answers for which checkers take different ones for the same, or the same for different ones. */
export const FAMILY_PAIRS = String.raw`
# units that are left out, or measure the same
5\text{ cm} == 5
12\mathrm{~cm}^{2} == 12
5 \text{ m/s}^2 == 5
60 km/h == 60
60\text{ km/h} == 60 km/h
10 m/s == 10\text{ m/s}
12 square inches == 12
3\text{ sq. units} == 3
\$18.90 == 18.90
18.90\text{ dollars} == \$18.90
\$1 == 100\text{ cents}
5\text{ m} == 500\text{ cm}
1\text{ hour} == 60\text{ minutes}
36\text{ km/h} == 10\text{ m/s}
2\text{ hours }30\text{ minutes} == 150\text{ minutes}
2\text{ hours and }30\text{ minutes} == 2.5\text{ hours}
5\text{ ft }3\text{ in} == 63\text{ inches}
25^\circ\text{C} == 25
90^\circ == 90
x = 7\text{ miles} == 7
9.8\ \mathrm{kg\cdot m/s^2} == 9.8
5\text{ cm} != 6\text{ cm}
5\text{ cm} != 5\text{ m}
5\text{ cm} != 5\text{ cm}^2
60\text{ km/h} != 60\text{ mph}
\$5 != 5\text{ cents}
\$5 != €5
3\text{ hours} != 3\text{ minutes}
2\text{ hours }30\text{ minutes} != 230
2\text{ hours }30\text{ minutes} != 30\text{ minutes}
25^\circ\text{C} != 25^\circ\text{F}
25^\circ\text{C} != 25^\circ
5m != 5
5 m != 5
3mg != 3
10ms != 10
\frac{1}{2}mv^2 != \frac12 v^2
12\text{ apples} != 12\text{ oranges}
7\text{ dollars} != 7\text{ euros}
2\text{ ft} != 2\text{ in}
5\text{ m/s} != 5\text{ m/s}^2
5\text{ kg}\cdot\text{m} != 5\text{ kg/m}
1\text{ dozen} != 1

# upright letters that are no unit
2\mathrm{e} == 2e
\mathrm{e}^{2} == e^2
3+4\mathrm{i} == 3+4i
\mathrm{i}^2 == -1
\mathrm{e}^{\mathrm{i}\pi} == -1
\text{A} == A
\mathbf{v} == v
\operatorname{lcm}(a,b) == \text{lcm}(a,b)
2\mathrm{e} != 2
2e != 2
3\mathrm{i} != 3
\mathrm{e} != 1
4\mathrm{e} != 4\mathrm{i}
5\text{A} != 5\text{B}
x\mathbf{v} != x
2\mathrm{e} != 2\mathrm{cm}
3\operatorname{adj} != 3
n\text{P}r != n\text{C}r

# words behind numbers
2\text{ million} == 2000000
2.5\text{ million} == 2{,}500{,}000
3\text{ thousand} == 3000
2\text{ dozen} == 24
\text{twenty-one} == 21
\text{five} == 5
Five == 5
\text{three hundred and twelve} == 312
\text{two thousand five} == 2005
4\text{ AM} == 4\text{ a.m.}
4:30\text{ PM} == 4:30 p.m.
4\text{ PM} == 4:00\text{ PM}
2\text{ million} != 2\text{ billion}
2\text{ million} != 2
4\text{ AM} != 4\text{ PM}
4\text{ AM} != 4
4:30\text{ PM} != 4:30\text{ AM}
4:30\text{ PM} != 4:03\text{ PM}
\text{five} != 6
\text{twenty-one} != 20
\text{two and three} != 5
3\text{ thousand} != 3\text{ hundred}
4\text{ North} != 4\text{ South}
10\text{ BC} != 10\text{ AD}
5\text{ even} != 5\text{ odd}
\text{Room }4 != 4
7\text{ left} != 7\text{ right}
3\text{ dogs and }4\text{ cats} != 4\text{ dogs and }3\text{ cats}
3\text{ zorks }4\text{ blips} != 4\text{ zorks }3\text{ blips}

# sets of numbers by name
x\in\mathbb{R} == \mathbb R
x \in \mathbb{R} == x\in\mathbb R
(-\infty,\infty) == \mathbb{R}
x\in(-\infty,\infty) == \mathbb{R}
\mathbb{Z} == \mathbf{}\mathbb Z
ℝ == \mathbb{R}
\text{all real numbers} == \mathbb{R}
x\in\mathbb R != x\in\mathbb Z
\mathbb R != \mathbb Q
\mathbb{R} != R
\mathbb{R}^2 != \mathbb{R}^3
\mathbb{R} != \mathbb{R}^+
x\in\mathbb{R} != y\in\mathbb{R}
x\notin\mathbb{Q} != x\in\mathbb{Q}
n\in\mathbb{N} != n

# letters of choices, and texts
\text{A},\text{C} == A, C
\text{A},\text{C} == \text{C},\text{A}
\text{A and C} == A, C
\text{(B)} == B
\textbf{(B)} == (B)
\text{Yes} == yes
\text{no} == no
no == No
\text{Evelyn} == Evelyn
\text{June 20} == June 20
\text{parallel lines} == parallel lines
\mathrm{True} == \text{true}
\text{A},\text{C} != \text{A}
\text{A},\text{C} != C
\text{A, B} != \text{A, C}
no != on
\text{no} != \text{on}
no != \text{on}
\text{saw} != \text{was}
god != dog
east != seat
\text{Yes} != \text{No}
\text{man bites dog} != \text{dog bites man}
\text{June 20} != \text{June 21}
\text{June 20} != \text{July 20}
\text{June 20} != 20
\text{red} != r e d d
ACB != BCA
\text{True} != \text{False}
\text{odd} != \text{even}
\text{not even} != \text{even}

# bars over letters and digits
\bar{z} == \overline{z}
\overline{z+w} == \overline{w+z}
2\bar z == \bar{z}\cdot 2
0.\overline{3} == \frac13
0.1\overline{6} == \frac16
0.\bar{3} == 1/3
0.(3) == \frac13
0.333\ldots == \frac13
\overline{AB} == \overline{AB}
\overline{AB} = 5 == 5
\bar{z} != z
\overline{z} != z
\overline{z}w != \overline{zw}
\overline{z+1} != \overline{z}-1
\overline{AB} != AB
\overline{AB} != \overline{CD}
\hat{x} != x
\hat{x} != \bar{x}
\bar{x} != \bar{y}
0.\overline{3} != 0.3
0.1\overline{6} != 0.\overline{16}
0.\overline{9} != 0.9
0.(3) != 0
0.333 != \frac13
\overline{3} != 3
x_{\bar{a}} != x_a

# functions and products
f(2x) == f(x+x)
x(x+1) == x^2+x
n(n+1)/2 == \frac{n^2+n}{2}
a(b+c) == ab+ac
f(x)+g(x) == g(x)+f(x)
k(2x) == 2kx
f(x)g(x) == g(x)f(x)
\pi(r+1) == \pi r+\pi
2f(x) == f(x)+f(x)
f^{-1}(x) == f^{-1}(x)
f(2x) != 2f(x)
f(x+1) != f(x)+f(1)
f(x+y) != f(x)+f(y)
f(x) != g(x)
f(g(x)) != g(f(x))
f(x) != xf
f(x)^2 != f(x^2)
f^{-1}(x) != \frac{1}{f(x)}
f'(x) != f(x)
f''(x) != f'(x)
P(2n) != 2P(n)
T(n+1) != T(n)+1
f(-x) != -f(x)
g(ab) != g(a)b
\gcd(a,b) != \text{lcm}(a,b)
\phi(10) != 10\phi
f(1,2) != f(2,1)
|f(x)| != f(x)
\sqrt{f(x)^2} != f(x)

# targets that were unreadable: matrices, sets, points by name
\begin{pmatrix}1&2\\3&4\end{pmatrix} == \left[\begin{array}{cc}1&2\\3&4\end{array}\right]
\left(\begin{array}{c}1\\2\end{array}\right) == \begin{bmatrix}1\\2\end{bmatrix}
\{1,2\} == S=\{1,2\}
\{2,1\} == S = \{1, 2\}
(1,2) == (x,y)=(1,2)
x=1, y=2 == (x,y)=(1,2)
x=1, y=2 == (1,2)
(x,y)=(1,2) == (x, y) = (1, 2)
A = \begin{pmatrix}1&0\\0&1\end{pmatrix} == \begin{pmatrix}1&0\\0&1\end{pmatrix}
(-3,\infty) == D = (-3,\infty)
\begin{cases}x=1\\y=2\end{cases} == x=1, y=2
\left\{\begin{array}{l}x=1\\y=2\end{array}\right. == (x,y)=(1,2)
\begin{cases} x & \text{if } x>0 \\ 0 & \text{otherwise}\end{cases} == \begin{cases} 0 & \text{otherwise} \\ x, & x>0\end{cases}
\begin{pmatrix}1&2\\3&4\end{pmatrix} != \left[\begin{array}{cc}1&2\\3&5\end{array}\right]
\{1,2\} != S=\{1,3\}
S=\{1,2\} != T=\{1,2\}
(2,1) != (x,y)=(1,2)
(x,y)=(1,2) != (y,x)=(1,2)
x=2, y=1 != (x,y)=(1,2)
2, 1 != x=1, y=2
(1,2) != S=\{1,2\}
\begin{vmatrix}1&2\\3&4\end{vmatrix} != \left[\begin{array}{cc}1&2\\3&4\end{array}\right]
\begin{cases}x=1\\y=2\end{cases} != x=2, y=1
x=1\text{ or }y=2 != x=1\text{ and }y=2
\{x = 1\} != \{x = 2\}
(1,2) != [1,2]
\begin{cases} x & \text{if } x>0 \\ 0 & \text{otherwise}\end{cases} != \begin{cases} x & \text{if } x\ge0 \\ 0 & \text{otherwise}\end{cases}

# ratios, currencies, dates, figures and what nobody reads
3:4 == \frac34
6:8 == 3:4
1:2:3 == 2:4:6
3\text{ to }4 == 3:4
£5 == 5
\triangle ABC == \triangle ABC
\angle ABC == \angle{ABC}
\angle ABC = 40^\circ == 40
x^2\,\mathrm{d}x == x^2\mathrm{d}x
\int_0^1 f(x)\,dx == \int_0^1 f(x) dx
a \mid b == a\mid b
3:4 != 4:3
1:2:3 != 3:2:1
1:2:3 != 1:2
1:2:3 != 1:2:4
£5 != \$5
\triangle ABC != \triangle ABD
\angle ABC != \angle BAC
\angle ABC != \triangle ABC
\int_0^1 f(x)\,dx != \int_0^2 f(x)\,dx
\text{May 5} != \text{May 15}
a\mid b != b\mid a
A\to B != B\to A
A \Rightarrow B != A \Leftarrow B
1 2 != 12
\sum_{k=1}^n a_k != \sum_{k=1}^n b_k

# chains of equalities and roundings
x = \frac{10}{2} = 5 == 5
\frac{10}{2} = 5 == 5
4\pi \approx 12.57 == 4\pi
4\pi \approx 12.57 == 12.57
x \approx 3.14 == 3.14
\approx 3.14 == 3.14
= 5 == 5
A = \pi r^2 = 9\pi == 9\pi
f'(x) = 2x == 2x
f'(x)=3x^2 == 3x^2
f^{-1}(x) = \frac{x-1}{2} == \frac{x-1}{2}
\frac{dy}{dx} = 2x == 2x
a_n = 2n-1 == 2n-1
P(A\mid B) = \frac13 == \frac13
|AB| = 5 == 5
[ABC] = 6 == 6
y = 2x+1 == 2x+1
\text{Area} = 12 == 12
2+2 = 5 != 5
x = 4 = 5 != 5
7 \approx 5 != 5
4\pi\approx 13.57 != 13.57
4\pi \approx 12.57 != 12.56
2x = 4 != 4
x^2 = 4 != 4
x = 5 != y = 5
f(x) = x^2 != g(x) = x^2
f(x)=x^2 != f'(x)=x^2
f'(x) = 2x != 2
|x| = 5 != 5
\sin x = 1 != 1
x = 5 != 6
x + y = 5 != 5
-x = 5 != 5
n(n+1) = 6 != 6
\sqrt{x} = 3 != 3
4 \ne 5 != 5

# relations and intervals
[2,5) == 2\le x<5
2\le x<5 == x\in[2,5)
x > 3 == (3,\infty)
x\ge 2, x<5 == [2,5)
x\ge2\text{ and }x<5 == 2 \le x < 5
x<2\text{ or }x>5 == (-\infty,2)\cup(5,\infty)
x \ne 2 == (-\infty,2)\cup(2,\infty)
x\ne 2 == \mathbb{R}\setminus\{2\}
-\infty<x<\infty == \mathbb{R}
5 > x \ge 2 == [2,5)
x > \sqrt2 == (\sqrt2,\infty)
\{x\mid 0<x<1\} == (0,1)
[1,3]\cup[2,5] == [1,5]
]0,1[ == (0,1)
[2,5) != 2<x<5
[2,5) != 2\le x\le5
(3,\infty) != x\ge3
(3,\infty) != x<3
x<2\text{ or }x>5 != (2,5)
x<2\text{ or }x>5 != (-\infty,2]\cup(5,\infty)
x<2\text{ and }x>1 != x<2\text{ or }x>1
x \ne 2 != \mathbb{R}
x\ne2 != x=2
2<x<5 != 2<y<5
x>3 != 3
(0,1) != 0<x<2
[1,2)\cup(2,3] != [1,3]
[0,\infty] != [0,\infty)
(\infty,3) != (-\infty,3)
x>2, x<5 != \mathbb{R}

# fractions with over
{1 \over 2} == \frac12
{x+1 \over 3} == \frac{x+1}{3}
1 \over 2 == 0.5
{a \over b} + c == \frac ab + c
{1 \over 1 + {1 \over 2}} == \frac23
{1 \over 2} != 2
{x+1 \over 3} != x+\frac13
{1 \over 2} != 12
{a \over b+c} != \frac{a}{b}+c
1 + {1 \over 2} != \frac{2}{2}

# numbers with thousands' separators in sets and lists
1,234 == 1234
\{1,000, 2,000\} == \{1000, 2000\}
\{1{,}000, 2{,}000\} == \{2000, 1000\}
100,200 == 100, 200
100,200 == 100200
(1,000, 2,000) == (1000, 2000)
\{100,200\} == \{200, 100\}
1,000, 2,000 == 2000, 1000
1,234 != 1235
1,234 != 1, 235
\{1,000, 2,000\} != \{1, 2\}
\{1,000, 2,000\} != \{1, 0, 2\}
(1,234) != 1234
(1,234) != (1,2,3,4)
12,34 != 1234
1,2345 != 12345
1,000,000 != 1000
[1,234] != 1234

# a point or an interval and a number in brackets
(1,234) != (1234)
[1,234] != [1234]
[1,234) != [1234)
(-1,234) != (-1234)
\left(1,234\right) != \left(1234\right)
\langle 1,234\rangle != \langle 1234\rangle
(1,234,567) != (1234567)
(1,234.5) != (1234.5)
x \in (1,234) != x \in (1234)
(x,y)=(1,234) != (x,y)=(1234)
P(1,234) != P(1234)
\gcd(1,234) != \gcd(1234)
(0,1)\cup(1,234) != (0,1)\cup(1234)
(1,234), (2,345) != (1234), (2345)
((1,234),5) != ((1234),5)
\{(1,234)\} != \{(1234)\}
(1,234) == (1, 234)
(1,234) == 1 < x < 234
(1{,}234) == (1234)
(x,y)=(1,234) == (1,234)
\{1,234\} == \{1234\}
\sqrt{1,234} == \sqrt{1234}
`;
