/** Answers from mathematical datasets, each with another spelling. */
export const ANSWER_PAIRS = String.raw`
# the same answer
10\text{ square units} == 10
\text{ellipse} == ellipse
y = 2x + 3 == 2x - y + 3 = 0
1 \pm \sqrt{19} == 1-\sqrt{19}, 1+\sqrt{19}
x = 1 \pm \sqrt{19} == 1 \pm \sqrt{19}
0.\overline{3} == \frac{1}{3}
\frac{7}{99} == 0.\overline{07}
12\frac{1}{2} == 12.5
12 \frac12 == \frac{25}{2}
\left(3, \frac{\pi}{2}\right) == (3,\pi/2)
16x+24y+32-4z == 4(4x+6y+8-z)
(-\infty, 2) \cup (3,\infty) == (3,\infty)\cup(-\infty,2)
x \in [-2,7] == [-2,7]
$x \in [-2,7]$ == -2 \le x \le 7
\frac{3}{4}\text{ miles} == 0.75
15\mbox{ cm}^2 == 15
15\mbox{ cm}^2 == 15 \text{ cm}^2
\$32{,}348 == 32348
32,348 dollars == \$32{,}348
6 - 5i == -5i+6
\text{Monday} == Monday
3:00 == 3:00
1 : 5 == 1:5
E2_{16} == E2_{16}
A, C, D == \text{A, C, D}
B,D,E == E, D, B
\text{A and B} == A and B
90 degrees == 90
120^\circ == 120 \text{ degrees}
\frac{270}{7}\text{ degrees} == \frac{270}{7}
x^3+3x-6=0 == x^3+3x-6 = 0
5 == 5.
x=5 == x = 5.
\boxed{5} == 5
18 == \$18
18 eggs == 18
18 \text{ eggs} == 18
540 meters == 540
20 years old == 20
5 hours == 5
5 hours == 300 minutes
25% == 25\%
\frac{n(n+1)}{2} == \frac{1}{2}n(n+1)
2^{n-1} == \frac{2^n}{2}
\{(1,1),(2,3)\} == (1,1),(2,3)
(1,1) \text{ and } (2,3) == (1,1), (2,3)
k=1,2 == 1,2
x=-2,1 == -2,1
x=-2, x=1 == \{-2,1\}
p=3, q=5 == (p,q)=(3,5)
(p,q) = (3,5) == (3,5)
a=3, b=4 == a = 3, b = 4
T=2\pi\sqrt{\frac{L}{g}} == 2\pi\sqrt{\frac{L}{g}}
2\pi\sqrt{L/g} == T=2\pi\sqrt{\frac{L}{g}}
\frac{1}{2} m v^2 == \frac{mv^2}{2}
4.9 \times 10^{-7}\ \mathrm{m} == 4.9\times10^{-7}
7.5 \times 10^{-9} == 0.0000000075
e^{\pi / 2} == e^{\frac{\pi}{2}}
\frac{1}{2 \log 2} == \frac{1}{\log 4}
u_{n} == u_n
\left\{\frac{1}{2}, 3\right\} == \{3, 0.5\}
\{1\pm\sqrt{5},-2\} == \{-2, 1+\sqrt5, 1-\sqrt5\}
(3, \infty) == x > 3
\left[ -\frac{1}{2}, \frac{1}{2} \right] == -0.5 \leq x \leq 0.5
t > 0 == (0, \infty)
all real numbers == (-\infty,\infty)
no solution == \text{no solution}
No solutions == no solution
\emptyset == \varnothing
i == \mathrm{i}
\cos\theta + i\sin\theta == e^{i\theta}
\text{cis } 30^\circ == \text{cis } 30^\circ
3\sqrt{13} == \sqrt{117}
3 \sqrt {13} == \sqrt{117}
\frac{\sqrt{3}}{3} == \tan 30^\circ
-\frac{1}{2} + \frac{\sqrt{3}}{2}i == e^{2\pi i/3}
\sqrt{x+2} == (x+2)^{1/2}
|x-3| == |3-x|
\sqrt{(x+1)^2} == |x+1|
\sqrt{x^2+2x+1} == |x+1|
x^{\frac{1}{2}} == \sqrt{x}
\log_{10} 5 == \log 5
5x^2+... == 5x^2+...
\frac{1}{\sqrt[3]{2}} == \frac{\sqrt[3]{4}}{2}
1,\,2,\,3 == 1,2,3
\text{5} == 5
\textbf{5} == 5
\mathbf{5} == 5
\underline{5} == 5
5 \quad == 5
5\ \text{or}\ 6 == 5,6
5 or 6 == 6,5
(5,6) == (5, 6).
1/2 == \frac{1}{2}
-1/2 == \frac{-1}{2}
- \frac{1}{2} == -0.5
$\frac{1}{2}$ == 1/2
2(x + 1) == 2x+2
f(x) = 2(x+1) == 2x+2
f(x) = 2(x+1) == f(x) = 2x+2
y=2x+2 == 2x+2
AB = 5 == 5
\angle A = 30^\circ == 30^\circ
m\angle A = 30 == 30
P = \frac{1}{3} == \frac13
\theta = \frac{\pi}{4} == \pi/4
x = 0, \pi == 0, \pi
x = 0 \text{ or } x = \pi == \{0,\pi\}
x = n\pi, n \in \mathbb{Z} == x=n\pi, n\in\mathbb{Z}
\frac{a}{b} = \frac{2}{3} == \frac23
a:b = 2:3 == 2:3
2:3 == \frac23
a : b : c = 1:2:3 == 1:2:3
x : y = 3 : 4 == 3:4
\langle 1,2 \rangle == \left< 1,2 \right>
(1,2) == \left\langle 1,2\right\rangle
x < -1 or x > 2 == (-\infty,-1)\cup(2,\infty)
x\leq -1 \text{ or } x\geq 2 == (-\infty,-1]\cup[2,\infty)
-1 < x < 2, x\ne 0 == (-1,0)\cup(0,2)
x>0, x \neq 1 == (0,1)\cup(1,\infty)
10! == 3628800
1 + 2i, 1 - 2i == 1 \pm 2i
\frac{1 \pm \sqrt{5}}{2} == \frac{1+\sqrt5}{2}, \frac{1-\sqrt5}{2}
x^2 - 5x + 6 == (x-2)(x-3)
0 == 0.0
-0 == 0
+5 == 5
5.0 cm == 5\text{ cm}
\approx 5.3 == 5.3
~5 == 5
about 5 == about 5
\text{(A) } 5 == \text{(A) }5
\text{C} == (C)
C == \textbf{(C)}
(C) 5 == \text{(C)}
8 \pi \text{ cm}^3 == 8\pi
8\pi cm^3 == 8\pi
8\pi \, cm^3 == 8\pi
25\ \text{cm}^2 == 25 cm^2
3.5\times10^2 == 350
\dfrac{1}{2} == \tfrac{1}{2}
\cfrac{1}{2} == \frac12
\sqrt[3]{2} == 2^{\frac13}
\sin^2(x) == (\sin x)^2
\sin^{2} x == 1-\cos^2 x
\tan^{-1}(1) == \frac{\pi}{4}
\arctan(2) == \tan^{-1} 2
\ln|x|+C == \ln|x| + C
\frac{x^3}{3}+C == \frac13 x^3+C
1\text{ and }2 == 1,2
4,\!000 == 4000
1\ 000\ 000 == 1000000
10^6 == 1{,}000{,}000
1 million == 1,000,000
\text{\$5} == \$5
5\text{¢} == 5 cents
5^\text{th} == 5\text{th}
\text{Tuesday} == tuesday
\frac12\text{ hour} == 30\text{ minutes}
5\,\text{units}^2 == 5\text{ square units}
9 \text{ sq. ft.} == 9\text{ ft}^2
f^{-1}(x) = x+1 == x+1
x = \log_2 3 == \log_2 3
x = \frac{\ln 3}{\ln 2} == \log_2 3
\binom{2n}{n} == \frac{(2n)!}{(n!)^2}
C(5,2) == C(5,2)
2\cdot 3\cdot 5 == 30
2^3 \cdot 3 == 24
\frac{\frac12}{3} == \frac16
\left\lfloor\frac{n}{2}\right\rfloor == \lfloor n/2\rfloor
\max\{a,b\} == \max\{a,b\}
\max(a,b) == \max(a, b)
1 - \frac{1}{e} == 1-e^{-1}
(0,0), (1,1) == (1,1), (0,0)
x=1,y=2,z=3 == (1,2,3)
x = 1, \quad y = 2 == (1,2)
x=1 \text{ and } y=2 == (x,y) = (1,2)
(a,b,c)=(1,2,3) == (1,2,3)
n = 7 == 7
n=7 or n=8 == 7, 8
n \ge 7 == [7,\infty)
n \geqslant 7 == n\ge 7
\frac{1}{2}\% == 0.5\%
1{:}2 == 1:2
10 : 30 == 1:3
n\pi, n\in\mathbb{Z} == n\pi
\begin{pmatrix}1\\2\end{pmatrix} == (1,2)
60\frac{\text{km}}{\text{h}} == 60\text{ km/h}
60\frac{\text{km}}{\text{h}} == 60
\begin{aligned} x &= 1 \\ y &= 2\end{aligned} == x=1, y=2
\begin{array}{l} x=1 \\ y=2 \end{array} == \begin{array}{l} x=1 \\ y=2 \end{array}
3/4 cup == 0.75
3 days == 72 hours
3.2 x 10^4 == 32000
3.2 \times 10^4 == 32000
¾ == 0.75
(1，2) == (1,2)
\frac12mv^2 == \frac{1}{2}mv^2
5 min == 5 minutes
5 sec == 5\text{ sec}
5\text{ sec} == 5
\sqrt{x^4+2x^2+1} == x^2+1
\sqrt{4x^2+12xy+9y^2} == |2x+3y|
2^{\frac{1}{2}} == \sqrt 2
\text{Room 4} == Room 4
2\text{ hours }20\text{ minutes} == 140\text{ minutes}
1101_{\text{two}} == 1101_2
3.5\text{ million} == 3{,}500{,}000
7\text{ thousand} == 7,000
one hundred twenty-three == 123
\text{one-hundred} == 100
\text{Twelve} == 12
twelve == 12
x = 7, \text{ or } x = -7 == \pm 7
\text{both } 2 \text{ and } 3 == \text{both } 2\text{ and }3
2 and 3 == 3 and 2
2, 3, and 5 == 5, 3, 2
x=-\frac{1}{2}\text{ and }x=3 == -0.5, 3
A=\{1,2\}, B=\{3\} == B=\{3\}, A=\{1,2\}
-\infty < x < 3 == (-\infty,3)
x < 3 == x \in (-\infty, 3)
y \geq 0 == [0,\infty)
\{y \mid y \ge 0\} == [0, \infty)
\{x \in \mathbb{R} \mid x \ne 3\} == (-\infty,3)\cup(3,\infty)
\mathbb{R} \setminus \{1, 2\} == (-\infty,1)\cup(1,2)\cup(2,\infty)
(-\infty,1)\cup(1,2)\cup(2,\infty) == x\neq 1, x \neq 2
x \neq 1 \text{ and } x\neq 2 == (-\infty,1)\cup(1,2)\cup(2,\infty)
a < x < b == x \in (a,b)
(a,b) == a<x<b
x>a == (a,\infty)
0 < x \leq \frac{1}{2} == (0, 0.5]
[0, \frac{\pi}{2}) == 0\le\theta<\frac{\pi}{2}
x^2-3x+2=0 == (x-1)(x-2)=0
y=\frac{1}{2}x+3 == x-2y+6=0
y-3=\frac12 x == y = \frac12 x+3
r=2\cos\theta == r = 2\cos \theta
x^2+y^2=2x == (x-1)^2+y^2=1
\frac{x^2}{4}+y^2=1 == x^2+4y^2=4
f(x)=\frac{1}{x} == \frac{1}{x}
g(t) = 3t == 3t
y' = 2x == 2x
\frac{d y}{d x} = 2x == 2x
\frac{\partial f}{\partial x} = 2x == \frac{\partial f}{\partial x}=2x
S_{10} = 55 == 55
a_1 = 3 == 3
\lim_{x\to0} \frac{\sin x}{x} = 1 == 1
\sum_{k=1}^{10} k = 55 == 55
\int_0^1 x\,dx = \frac12 == \frac12
x = 3\sqrt{2} \approx 4.24 == 3\sqrt2
3\sqrt2\approx 4.243 == 4.243
\frac{2}{3} \approx 0.667 == \frac23
\frac23\approx 0.6667 == 0.6667
\text{Area} = \pi r^2 = 25\pi \text{ cm}^2 == 25\pi
V = 36\pi \text{ cubic inches} == 36\pi
d = \sqrt{3^2+4^2} = 5 == 5
P(\text{heads}) = \frac12 == \frac12
\text{slope} = 2 == 2
\text{The slope is } 2 == \text{the slope is }2
BC = 5\text{ cm} == 5
\overline{AB} = 5\text{ cm} == 5
\angle ABC = 45^\circ == 45^\circ
m\angle ABC = 45^\circ == 45
\widehat{AB} = 60^\circ == 60
\{0, 1, 2, \ldots, 9\} == \{0,1,2,\dots,9\}
1, 3, 5, \ldots == 1,3,5,\dots
2\sqrt{2}+\sqrt{3}i == 2\sqrt2+i\sqrt3
e^{2} == \mathrm{e}^2
2\mathrm{i} == 2i
\ln 2 == \log_e 2
\lg 100 == 2
\mathrm{lcm}(2,3) == \operatorname{lcm}(2,3)
\gcd(a,b) == \gcd(a,b)
|z| = 5 == |z| = 5
\left\|v\right\| == \|v\|
f \circ g == f\circ g
\neg p == \neg p
p \land q == p \wedge q
p \Rightarrow q == p\Rightarrow q
\text{True} == true
(x+1)(x+2)(x+3) == (x+3)(x+2)(x+1)
36\pi == 36 \pi
36 pi == 36\pi
36*pi == 36\pi
sqrt(2)/2 == \frac{\sqrt2}{2}
2^(1/2) == \sqrt2
(1+sqrt(5))/2 == \frac{1+\sqrt5}{2}
1+sqrt5/2 == 1+\frac{\sqrt5}{2}
x^(2) == x^2
pi/4 == \frac{\pi}{4}
3 + 4 i == 3+4i
[-3, 3] == -3 <= x <= 3
x>=3 == [3, oo)
(-oo, 3) == (-\infty,3)
{1,2,3} == \{1,2,3\}
x \ne \pm 2 == (-\infty,-2)\cup(-2,2)\cup(2,\infty)
x\neq 2, x \neq -2 == x \ne \pm 2
a<5 == (-\infty,5)
k > 3 == (3,\infty)
-3<m<3 == (-3,3)
|3+4i| == 5
|1+i| == \sqrt2
|e^{ix}| == 1
|i|^2 == 1
|z|^2 == |z|^2
|z| == |z|
|\sin x|^2 == \sin^2 x
|x|^2 == x^2
|x+1|^2 == (x+1)^2
|a+bi| == \sqrt{a^2+b^2}
n!! == n!!
(3!)! == 720
y=x^2 == x^2
S=ab == ab
f^{-1}(x) = x == x
\frac{1}{2}{x} == \frac{x}{2}
|\cos x| == |\cos(-x)|
\textbf{(C)}\ 34 == C
\textbf{(C)}\ 34 == 34
\textbf{(C) }34 == \text{C}
\textbf{(C)}\ \frac{1}{2} == \frac12
\textbf{(C)}\ -3 == -3
(B)\frac12 == \frac{B}{2}
\frac{1}{13}\begin{pmatrix}1&2\\3&4\end{pmatrix} == \begin{pmatrix}1/13&2/13\\3/13&4/13\end{pmatrix}
2\left[\begin{array}{c}1\\2\end{array}\right] == \begin{pmatrix}2\\4\end{pmatrix}
-\begin{pmatrix}1\\2\end{pmatrix} == \begin{pmatrix}-1\\-2\end{pmatrix}
\text{no solution} == \emptyset
No solutions == \emptyset
x^{-1/2} == \frac{1}{\sqrt{x}}
x\sqrt{x} == x^{3/2}
\log_28 == 3
\text { cm } == \text{cm}
5 \mathrm { ~cm } == 5
90 ^ { \circ } == 90
`;
