/** Answers that look like each other and are not the same. */
export const DIFFERENT_PAIRS = String.raw`
# another answer
E2_{16} != E3_{16}
18 eggs != 19
5 hours != 5 minutes
\frac{a}{b} = \frac{2}{3} != \frac32
9 \text{ sq. ft.} != 9\text{ cu. ft.}
n\pi, n\in\mathbb{Z} != n\pi, n\in\mathbb{N}
x>2, x\in\mathbb{Z} != x>2
n\in\mathbb{Z} != n
\begin{pmatrix}1\\2\end{pmatrix} != (2,1)
\begin{pmatrix}1&2\end{pmatrix} != \begin{pmatrix}1\\2\end{pmatrix}
60\frac{\text{km}}{\text{h}} != 60\text{ mph}
\frac{\text{km}}{\text{h}} != 60
\sqrt{x^2+2x+1} != x+1
A=\{1,2\}, B=\{3\} != A=\{3\}, B=\{1,2\}
[0, \frac{\pi}{2}) != 0\le\theta\le\frac{\pi}{2}
1, 3, 5, \ldots != 1,3,5
f \circ g != g\circ f
p \land q != p \lor q
x \ne \pm 2 != \mathbb{R}
x>a != a>x
|i|^2 != -1
|3+4i|^2 != -7+24i
|z|^2 != z^2
|e^{ix}|^2 != e^{2ix}
\sqrt{z^2} != z
{1}{2} != 2
3!! != 720
n!! != (n!)!
a=b != b
y = x != y = z
\frac{1}{2}{3} != 1.5
\textbf{(C)}\ 34 != \textbf{(D)}\ 34
\textbf{(C)}\ 34 != D
\textbf{(C)}\ 34 != 35
\textbf{(C)}\ 34 != \textbf{(C)}\ 35
(B) 2 != 2B
2\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}2\\2\end{pmatrix}
\begin{pmatrix}1\\2\end{pmatrix}+\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}1\\2\end{pmatrix}
\begin{pmatrix}1\\2\end{pmatrix}\begin{pmatrix}3&4\end{pmatrix} != \begin{pmatrix}3&4\end{pmatrix}
A\begin{pmatrix}1\\2\end{pmatrix} != \begin{pmatrix}1\\2\end{pmatrix}
\text{no solution} != 0
3\mathrm{e}^2 != 3
\mathrm{e}x != x
5\mathbb{Z} != 5
x\in\mathbb{Z}^+ != x\in\mathbb{Z}
k\in\mathbb Z != k \in \mathbb{N}
2\text{ billion} != 2\text{ trillion}
3\text{ hundred} != 3
12\text{ noon} != 12\text{ midnight}
10\text{ East} != 10\text{ West}
5\text{ up} != 5\text{ down}
\text{B},\text{D} != \text{B}
\text{B} != \text{B},\text{D}
\text{A, B, C} != \text{A, B}
\text{not enough information} != \text{enough information}
\text{evil} != \text{vile}
\text{top} != \text{pot}
pot != top
ten != net
\text{ten} != \text{net}
tea != eat
tea != ate
\overline{x} != x
\bar{X} != X
2\bar{3} != 23
\overline{12} != 12
0.\overline{12} != 0.12
0.\overline{12} != 0.\overline{21}
1.\overline{3} != 1.3
\overline{z_1z_2} != z_1z_2
\overline{AB} != \overrightarrow{AB}
g(3x) != 3g(x)
h(x-1) != h(x)-1
F(x)+C != Fx+C
f(3) != 3f
y(0) != 0
f(0) != 0
S(n) != nS
\sigma(6) != 6\sigma
\varphi(ab) != \varphi(a)\varphi(b)
\ln(f(x)) != f(\ln x)
\left[\begin{array}{cc}1&0\\0&1\end{array}\right] != \left[\begin{array}{cc}0&1\\1&0\end{array}\right]
(x,y)=(2,1) != (x,y)=(1,2)
(x,y)=(2,1) != (1,2)
a=1,b=2,c=3 != a=1,b=3,c=2
\text{June 20} != \text{June 2}
\text{June 20, 2020} != \text{June 20, 2021}
\triangle ABC != \triangle DEF
ABC != CAB
\angle A != \angle B
\$5 != \text{€}5
5\text{ hours }20\text{ minutes} != 5\text{ hours }2\text{ minutes}
5\text{ hours }20\text{ minutes} != 5.2\text{ hours}
5\text{ lb }4\text{ oz} != 5.4\text{ lb}
6\text{ ft} != 6\text{ ft}^2
6\text{ km}^2 != 6\text{ km}
3\text{ kg} != 3\text{ g}
3\text{ g} != 3\text{ kg}
1\text{ m} != 1\text{ mm}
5 km != 5 mm
5 km/h != 5 km/s
40^\circ != 40^\circ\text{F}
x = 3 \ne 4 != 4
5 = 4 != 5
5 = 4 != 4
3 \approx 4 != 4
3 \approx 4 != 3
x = 3.14 \approx 3 != 4
y = x^2 = 4 != x^2
f'(x) = 2x != f(x) = 2x
f''(x) = 2 != f'(x)=2
(2,5] != 2\le x<5
2 < x != x < 2
(-\infty,2)\cup(5,\infty) != 2<x<5
x\ge 2 != x>2
x \le 3 \text{ and } x \ge 1 != [1,3)
x<1\text{ or }x<2 != (-\infty,1)
\mathbb{R} != (0,\infty)
x \not= 5 != 5
x \not= 5 != x = 5
x \neq \pm 2 != \pm 2
x\ne 2, x \ne -2 != x\neq 2
{3 \over 4} != {4 \over 3}
{a+b \over c} != a+{b \over c}
\{1,234, 5,678\} != \{1,2\}
\{1,234\} != \{1,2,3,4\}
1,2,34 != 1,234
1,23,456 != 123456
\text{3 apples} != \text{3 oranges}
\text{3 apples} != \text{2 apples}
n\mathrm{C}2 != n\mathrm{P}2
2\mathbf{i}+3\mathbf{j} != 3\mathbf{i}+2\mathbf{j}
2\mathbf{i} != -2\mathbf{i}
\mathbf{i}^2 != -1
2\hat{i} != 2
\mathrm{Re}(z) != \mathrm{Im}(z)
\mathrm{Re}(z) != z
\text{Re}(z) != z\text{Re}
x^\text{T} != x
A^{\mathrm{T}} != A
A^{\top} != A
A^{*} != A
A^{\dagger} != A
A^c != A
2 \text{ remainder } 3 != 2
2 \text{ R } 3 != 2 \text{ R } 4
2\text{ R }3 != 3\text{ R }2
5 \text{ mod } 7 != 5
3 \pmod 5 != 3
x \equiv 3 != 3
\text{at least }5 != 5
\text{at least }5 != \text{at most }5
5\text{ or more} != 5
5\text{ or fewer} != 5\text{ or more}
\text{more than }5 != \text{less than }5
\text{none} != 0
\text{None} != \emptyset
2\text{nd} != 3\text{rd}
1\text{st} != 2\text{nd}
7:30 != 7:03
7:30\text{ AM} != 7:30\text{ PM}
12:00 != 12
\frac{1}{2}\text{ cup} != 2\text{ cups}
1/0 != \infty
\infty+1 != \infty
50\% != 50
50\% != 5\%
\text{yes, no} != \text{yes}
1 < 2 != 3 < 5
2=3 != 5=7
1=1 != 2=2
x=1,2 != x=1
x=1\text{ or }2 != x=1
x = 1 \text{ only} != x=1,2
(1,2,3) != \{1,2,3\}
[1,2,3] != (1,2,3)
(2,3)\cup(4,5) != (2,5)
\pm 3 != 3
\mp 3 != 3
1\pm2 != 3
f(x) \ge 3 != f(x) > 3
f(x) = 3 != g(x)=3
\max f = 3 != \min f = 3
\text{max}=3 != \text{min} = 3
5\mathrm{V} != 5\mathrm{W}
5\mathrm{mW} != 5\mathrm{MW}
5\text{ mm} != 5\text{ Mm}
n! != n
n!! != n!
\lfloor x != x
x' != x
\dot{x} != x
\tilde{x} != x
x^* != x
\mathcal{A} != A
\mathfrak{g} != g
|\vec{v}| != v
\|v\| != v
\vec{v}\cdot\vec{w} != \vec{v}\times\vec{w}
a\times b != b\div a
\nabla f != f
\partial f != f
\Re z != z
\sqrt{x^2} != x
\sqrt{(\ln x)^2} != \ln x
\sqrt{x_{n+1}^2} != x_{n+1}
\cot^{-1} x != \tan x
\sin^{-1}(x) != \csc(x)
\left.5\right. != 0.5
`;
