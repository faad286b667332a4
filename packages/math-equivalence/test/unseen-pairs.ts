/**
 * Pairs that were judged by hand before the comparison was first run on them, in families that no other table here has.
 * A line is an answer, `==` or `!=`, and a target.
 */
export const UNSEEN_PAIRS = String.raw`
# commands that are typography
\color{red}{7} == 7
\mathbin{x+1} == x + 1
\underline{12} == 12
\phantom{0}4 == 4
{\frac{{3}}{{4}}} == \frac34
\bigl(1,2\bigr) == (1,2)
x\,y\;z == xyz
\color{red}{7} != 8
\underline{12} != 21
\tfrac{12}{5} != \tfrac{1}{25}
{1}{2} != 2
x^{23} != x^2 3
\sqrt{23} != \sqrt{2}3
3 4/5 != 34/5

# complex numbers
(2+3i)(2-3i) == 13
\frac{1+i}{1-i} == i
i^{2026} == -1
2e^{i\pi/3} == 1+\sqrt{3}i
3-4i == -4i+3
2(\cos 60^\circ + i\sin 60^\circ) == 1+i\sqrt3
|3+4i| == 5
3+4i != 3-4i
3+4i != 4+3i
|3-4i| != 7
(1+i)^4 != 4
e^{i\pi/2} != -i
\frac{1+i}{2} != \frac{1-i}{2}
2i != 2
i^3 != i

# trigonometry
\sin 75^\circ == \frac{\sqrt6+\sqrt2}{4}
\tan 15^\circ == 2-\sqrt3
\cos^4 x-\sin^4 x == \cos 2x
\sec^2 x-\tan^2 x == 1
\frac{\sin 2x}{2\cos x} == \sin x
\sin\left(\frac{\pi}{2}-x\right) == \cos x
\arcsin\frac{1}{2} == \frac{\pi}{6}
\sin 30 != \frac12
\cos(x+y) != \cos x+\cos y
\sin 2x != 2\sin x
\tan(-x) != \tan x
\arccos\frac12 != \frac{\pi}{6}
\sin^{-1} x != \frac{1}{\sin x}
\cos x^2 != (\cos x)^2
\cot x != \tan x

# exponentials and logarithms
\ln 8 == 3\ln 2
\log_3 81 == 4
e^{3\ln 2} == 8
2^{x+3} == 8\cdot 2^x
\frac{\ln 27}{\ln 9} == 1.5
\log_2 3\cdot\log_3 2 == 1
9^{x/2} == 3^x
\ln(x+1) != \ln x+1
\log_2 6 != 2\log_2 3
e^{x+y} != e^x+e^y
2^{3x} != 6^x
\ln 2\cdot\ln 3 != \ln 6
\log_2 8 != \log_8 2
e^{-x} != -e^x
(e^x)^2 != e^{x^2}

# radicals
\sqrt{75} == 5\sqrt3
\frac{6}{\sqrt3} == 2\sqrt{3}
\sqrt[3]{54} == 3\sqrt[3]{2}
\sqrt{11+6\sqrt2} == 3+\sqrt2
\frac{1}{\sqrt3-\sqrt2} == \sqrt{3}+\sqrt{2}
\sqrt{\frac{8}{9}} == \frac{2\sqrt2}{3}
\sqrt[4]{4} == \sqrt2
\sqrt{5} != 2.236
\sqrt{2+3} != \sqrt2+\sqrt3
\sqrt[3]{9} != 3
5\sqrt3 != 3\sqrt5
\sqrt[5]{2} != 5\sqrt{2}
\sqrt{a^2+b^2} != a+b
\sqrt[3]{-27} != 3
2^{1/3} != 2/3

# counting
\frac{10!}{8!} == 90
\binom{10}{3} == \binom{10}{7}
6!\cdot 7 == 7!
{5 \choose 2} == 10
2^{10}-1 == 1023
(n+1)!-n! == n\cdot n!
\binom{7}{2}+\binom{7}{3} == \binom{8}{3}
5! != 5
(2n)! != 2\cdot n!
\binom{n}{2} != \frac{n}{2}
(3!)! != 3!\cdot 3!
3!! != 720
\binom{10}{3} != \frac{10}{3}
n!+1 != (n+1)!
2^{10} != 10^2

# absolute values, floors and cases
\lvert -7 \rvert == 7
|2x-6| == 2|x-3|
\lfloor \pi \rfloor == 3
\left\lceil\frac{7}{2}\right\rceil == 4
|ab| == |a||b|
\begin{cases} x & x\ge 0 \\ -x & x<0 \end{cases} == \begin{cases} x, & x\ge 0 \\ -x, & x<0 \end{cases}
|x+y| != |x|+|y|
|x| != x^2
\lfloor -2.5\rfloor != -2
\lceil x\rceil != \lfloor x\rfloor
\lfloor 2x\rfloor != 2\lfloor x\rfloor
\begin{cases} x & x\ge 0 \\ -x & x<0 \end{cases} != \begin{cases} -x & x\ge 0 \\ x & x<0 \end{cases}
|x-2| != |x+2|
|x|-|y| != |x-y|

# vectors and matrices
\langle 1, 2, 3\rangle == (1,2,3)
\begin{pmatrix}2\\4\end{pmatrix} == 2\begin{pmatrix}1\\2\end{pmatrix}
\begin{bmatrix}1/2&0\\0&1\end{bmatrix} == \begin{pmatrix}0.5&0\\0&1\end{pmatrix}
3\mathbf{i}-2\mathbf{j} == -2\mathbf{j}+3\mathbf{i}
\vec{a}+\vec{b} == \vec{b}+\vec{a}
\begin{pmatrix}1&2\\3&4\end{pmatrix} != \begin{pmatrix}1&3\\2&4\end{pmatrix}
\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}1&2\end{pmatrix}
\begin{vmatrix}1&2\\3&4\end{vmatrix} != \begin{pmatrix}1&2\\3&4\end{pmatrix}
\langle 1,2\rangle != \langle 2,1\rangle
3\mathbf{i}-2\mathbf{j} != 3\mathbf{j}-2\mathbf{i}
A^T != A
\vec{a}-\vec{b} != \vec{b}-\vec{a}
A^{-1} != A
\begin{pmatrix}1&2\\3&4\end{pmatrix}^{-1} != \begin{pmatrix}1&2\\3&4\end{pmatrix}

# polynomials and rational functions
(x-2)(x+3) == x^2+x-6
x^3-8 == (x-2)(x^2+2x+4)
\frac{1}{x-1}-\frac{1}{x+1} == \frac{2}{x^2-1}
(a-b)^2 == (b-a)^2
\frac{x^3+x}{x} == x^2+1
-(x-3) == 3-x
(x-2)(x+3) != x^2-x-6
(a-b)^3 != (b-a)^3
\frac{1}{x+y} != \frac1x+\frac1y
\frac{x+2}{2} != x+1
x^2-4 != (x-2)^2
2(x+1)^2 != (2x+2)^2
\frac{a}{b+c} != \frac{a}{b}+c
x^{-2} != -x^2

# decimal and scientific notation
4.20 == 4.2
3.0\times 10^{5} == 300{,}000
2.5\cdot 10^{-3} == 0.0025
1.2\text{E}4 == 12000
.75 == \frac{3}{4}
1.0 == 1
3.0\times 10^5 != 3.0\times 10^6
2.5\cdot10^{-3} != 0.00025
0.667 != \frac23
1.41 != \sqrt2
12.0 != 120
1.05 != 1.5
3.1416 != \pi
6.02\times 10^{23} != 6.02

# per cent
12\% == 12.0\%
\frac{1}{4}\% == 0.25\%
33\frac13\% == \frac{100}{3}\%
25\text{ percent} == 25\%
12\% != 12.5\%
25\% != 25
100\% != 100
-5\% != 5\%
0.5\% != 50\%
33\% != \frac{100}{3}\%

# angles
45^{\circ} == 45^\circ
180^\circ - 65^\circ == 115^\circ
90^\circ == \frac{\pi}{2}
2\pi\text{ rad} == 2\pi
60\text{ degrees} == 60^\circ
45^\circ != 54^\circ
90^\circ != \pi
60^\circ != \frac{\pi}{6}
1\text{ rad} != 1^\circ
30^\circ != 30\pi
360^\circ != 0

# infinity and no value
\infty == +\infty
-\infty == - \infty
\text{undefined} == undefined
\text{DNE} == DNE
\infty != -\infty
\infty != 0
\frac{1}{0} != \infty
\text{undefined} != 0
\text{DNE} != \infty
\infty-\infty != 0
0\cdot\infty != 0
\frac{0}{0} != 0

# set algebra
\mathbb{R}\setminus\{0\} == (-\infty,0)\cup(0,\infty)
(-\infty,3)\cap(1,\infty) == (1,3)
\{x : x>2\} == (2,\infty)
\{x\mid x\le 1\} == (-\infty,1]
[1,2]\cup[2,3] == [1,3]
\{3,1,2\} == \{1,2,3\}
\mathbb{R}\setminus\{0\} != \mathbb{R}
\mathbb{R}\setminus\{0\} != \mathbb{R}\setminus\{1\}
A\cup B != A\cap B
[1,2)\cup(2,3] != [1,3]
\{x : x>2\} != \{x : x<2\}
\{1,2\} != [1,2]
\{\emptyset\} != \emptyset
\mathbb{N} != \mathbb{Z}
(0,1) != \{0,1\}

# points and nested tuples
((1,2),(3,4)) == ((1,2), (3, 4))
(1,2),(3,4) == (3,4),(1,2)
\{(1,2),(2,1)\} == \{(2,1),(1,2)\}
\left(\frac12,\frac{\sqrt3}{2}\right) == (0.5,\sqrt{3/4})
(x,x^2) == (x, x\cdot x)
(1,2),(3,4) != (1,3),(2,4)
(1,2),(3,4) != (1,2)
((1,2),(3,4)) != (1,2,3,4)
\{(1,2)\} != \{(2,1)\}
(1,2,3) != (3,2,1)
(1,(2,3)) != ((1,2),3)
(0,0) != 0
(1,2) != 1,2,3

# congruences and bases
x\equiv 3\pmod{5} == x \equiv 3 \pmod 5
1101_2 == 1101_{2}
2A_{16} == 2A_{16}
x\equiv 3\pmod{5} != x\equiv 2\pmod{5}
x\equiv 3\pmod{5} != x\equiv 3\pmod{7}
x\equiv 3\pmod{5} != 3
101_2 != 101_3
1101_2 != 1101
2A_{16} != 2B_{16}
110_2 != 101_2

# sums, products, integrals and limits
\sum_{k=1}^{n} k == \sum_{k=1}^n k
\int_0^1 x^2\,dx == \int_{0}^{1} x^2 dx
\lim_{x\to 0} f(x) == \lim_{x \to 0} f(x)
\sum_{k=1}^{n} k != \sum_{k=0}^{n-1} k^2
\sum_{k=1}^{n} k != \prod_{k=1}^{n} k
\int_0^1 x^2\,dx != \int_0^2 x^2\,dx
\int_0^1 f(x)\,dx != f(x)
\lim_{x\to 0} f(x) != f(x)
x^2+C != x^2

# lines and curves
y = 2x+1 == 2x-y = -1
x^2+y^2 = 4 == \frac{x^2}{4}+\frac{y^2}{4} = 1
3x-6y+9=0 == x-2y+3=0
y-2 = 3(x-1) == y = 3x-1
x = 3 == 3 = x
y = 2x+1 != y = 2x-1
y = 2x+1 != x = 2y+1
x^2+y^2 = 4 != x^2+y^2 = 16
x^2-y^2 = 1 != y^2-x^2 = 1
x = 3 != y = 3
xy = 6 != x+y = 6
x^2 = 4 != x = 2
x^2 = 4 != 4
y = x != y = |x|

# sequences and indices
a_{n+1} == a_{1+n}
a_1+a_2 == a_2+a_1
x_{1}x_{2} == x_2x_1
2n-1 == 2(n-1)+1
a_{n+1} != a_n+1
a_{12} != a_1 a_2
x_1 != x_2
a_n != a_{2n}
a^n != a_n
2^{n-1} != 2^n-1
F_{n} != F_{n+1}
1,2,3,\dots != 1,2,3

# signs and order of operations
-(-5) == 5
2-3+4 == 3
-2^2 == -4
6/2(3) == 9
8-(3-1) == 6
2\cdot 3^2 == 18
\frac{-a}{-b} == \frac{a}{b}
-2^2 != 4
8-(3-1) != 4
2^{3^2} != 64
2\cdot3^2 != 36
1-x != x-1
-\frac12 != \frac12
(-3)^3 != 27
a-b-c != a-(b-c)

# case, alphabets and indices of names
\alpha+\beta == \beta + \alpha
\varepsilon^2 == \varepsilon\cdot\varepsilon
R^2-r^2 == (R-r)(R+r)
\theta+\phi == \phi+\theta
x' != x
R-r != 0
A+a != 2a
\alpha != a
\nu != v
\omega != w
\Delta != \delta
x' != x''
l != 1
O != 0

# probability and statistics
\frac{5}{36} == 5/36
1-\left(\frac56\right)^{4} == \frac{671}{1296}
P(A)=\frac14 == 0.25
\binom{4}{2}\left(\frac12\right)^4 == \frac38
\frac{5}{36} != \frac{36}{5}
0.25 != 0.75
\frac{671}{1296} != \frac{625}{1296}
P(A\mid B) != P(B\mid A)
P(A) != P(B)
\mu != \sigma
1\text{ in }4 != 4

# answers that hedge, or say more than one thing
x = 2 != x = 2, x = 3
2 \text{ or } 3 != 2
\{2\} != \{2,3\}
5, 5 != 5
2 = 3 != 3
4 < 5 != 5
7 \ne 8 != 8
x > 3 != 3
x=1, y=2 != 2, 1
x=1, y=2 != x=2, y=1
a=b != b
x=1,\ y=2 == y=2,\ x=1
`;
